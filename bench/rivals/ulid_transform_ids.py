"""ulid-transform: ULIDs in C++."""

DISTRIBUTION = "ulid-transform"
SETUP = "from ulid_transform import ulid_now"
CALLS = {"text": "ulid_now()"}
