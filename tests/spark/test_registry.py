"""The registries of message formats and of table formats."""

from importlib import import_module

import pytest

from spark_ext.formats import message_formats
from spark_ext.tables import table_formats

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("registry", [message_formats._FORMATS, table_formats._FORMATS], ids=["message", "table"])
def test_each_format_of_a_module_can_be_looked_up_by_its_name(registry):
    """The names that are known before a module is imported are those of its formats; a known name is in the errors."""
    modules = {home: import_module(home).FORMATS for home in registry._homes.values()}
    assert {format.name: home for home, formats in modules.items() for format in formats} == registry._homes
    assert [registry[name].name for name in registry.names] == list(registry.names)
    with pytest.raises(ValueError, match=rf"format must be one of {', '.join(registry._homes)}.*, got 'orc'"):
        registry["orc"]
