"""Register schemas of a subject in a registry's file, one after another: ``registry_writer.py FILE SUBJECT COUNT``.

Prints the ID and version of each schema once it is saved.
"""

import sys

from msgid.schemas import SchemaRegistry

if __name__ == "__main__":
    path, subject, count = sys.argv[1:]
    registry = SchemaRegistry(path, lock_timeout=60)
    print("ready", flush=True)
    for number in range(int(count)):
        schema = registry.register(subject, f'{{"const": "{subject} {number}"}}')
        print(schema.id, schema.version, flush=True)
