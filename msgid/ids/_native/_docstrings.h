/* The docstrings of the reference, for the compiled core. Written by:
 * pytest tests/unit/ids/test_native_docstrings.py --update-golden */
#define DOC_CORE \
    "An immutable value of bytes. Values of the same class are equal, hashed and ordered by their bytes."
#define DOC_CORE__OF \
    "_of($type, raw, /)\n" \
    "--\n" \
    "\n" \
    "Return an instance with bytes that the caller has checked."
#define DOC_CORE_HEX \
    "The text of the ID: two upper-case hex digits for each byte."
#define DOC_MINTER \
    "The part of a generator that makes IDs and handles threads, copies of the process and the clock."
#define DOC_MINTER_GENERATE \
    "generate($self, /)\n" \
    "--\n" \
    "\n" \
    "Return a new ID.\n" \
    "\n" \
    "Returns:\n" \
    "    A `MessageId`, greater as bytes than every ID that this generator has made since it began.\n" \
    "\n" \
    ">>> import msgid\n" \
    ">>> msgid.generate() < msgid.generate()\n" \
    "True"
#define DOC_MINTER_GENERATE_HEX \
    "generate_hex($self, /)\n" \
    "--\n" \
    "\n" \
    "Return a new ID as its text.\n" \
    "\n" \
    "Returns:\n" \
    "    34 upper-case hex digits. It is faster than ``str(generate())``, which makes a `MessageId` first.\n" \
    "\n" \
    ">>> import msgid\n" \
    ">>> len(msgid.generate_hex())\n" \
    "34"
#define DOC_PARSE \
    "parse($module, /, value)\n" \
    "--\n" \
    "\n" \
    "Parse an ID of any version from its text or its bytes.\n" \
    "\n" \
    "Args:\n" \
    "    value: ASCII hex digits in either case and nothing else, or bytes; or an ID, which is returned. Version 1 has\n" \
    "        34 digits or 17 bytes. Version 0 has 32 or 56 digits, or 16 or 28 bytes; with its version byte, 34 or 58\n" \
    "        digits, or 17 or 29 bytes. A scalar of NumPy or Arrow stands for its text or bytes.\n" \
    "\n" \
    "Returns:\n" \
    "    A `MessageId`, a `BrokerOffsetId` or a `ClientUniqueId`. The rule in `msgid.layout.v0_kind` distinguishes the\n" \
    "    two version-0 kinds. If it cannot decide, the result is a `ClientUniqueId` that is ``ambiguous``.\n" \
    "\n" \
    "Raises:\n" \
    "    InvalidMessageId: if the value is anything else.\n" \
    "\n" \
    ">>> parse(\"0156F7E71C361B21BC024CCDBE00000000\").pid\n" \
    "8636\n" \
    ">>> parse(\"7F0000010000238F000000000001E240\")\n" \
    "BrokerOffsetId('127.0.0.1', 9103, 123456)\n" \
    ">>> parse(\"0156F7E7 1C361B21BC024CCDBE0000000\")\n" \
    "Traceback (most recent call last):\n" \
    "msgid.InvalidMessageId: invalid message id '0156F7E7 1C361B21BC024CCDBE0000000': must have hex digits only"
#define DOC_IS_VALID \
    "is_valid($module, /, value)\n" \
    "--\n" \
    "\n" \
    "Return whether `parse` accepts a value.\n" \
    "\n" \
    "Args:\n" \
    "    value: Any object.\n" \
    "\n" \
    "Returns:\n" \
    "    True for an ID of any version, as a value, text or bytes. False for anything else; it never raises.\n" \
    "\n" \
    ">>> is_valid(\"7F0000010000238F000000000001E240\"), is_valid(\"7F00\"), is_valid(None)\n" \
    "(True, False, False)"
#define DOC_ROWS \
    "rows($module, prefix, parts, /)\n" \
    "--\n" \
    "\n" \
    "Encode the IDs one after the other, 17 bytes each.\n" \
    "\n" \
    ">>> rows(bytes(9), ((1, 0x10, 1, 2),)).hex(\" \", 17)\n" \
    "'0000000000000000000000000100000010 0000000000000000000000000100000011'"
#define DOC_HEX_ROWS \
    "hex_rows($module, prefix, parts, /)\n" \
    "--\n" \
    "\n" \
    "Encode the text of the IDs one after the other, 34 ASCII digits each."
#define DOC_HEX_LIST \
    "hex_list($module, prefix, parts, /)\n" \
    "--\n" \
    "\n" \
    "Encode each ID as its text."
