"""``python -m spark_ext``; what it does is in `spark_ext.cli`, which needs Click."""

from __future__ import annotations

import sys

try:
    from spark_ext.cli import main
except ImportError as missing:
    if missing.name != "click":
        raise
    sys.exit("spark_ext: the command line needs click: pip install 'msgid[spark,cli]'")

if __name__ == "__main__":
    main()
