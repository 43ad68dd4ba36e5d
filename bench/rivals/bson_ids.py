"""bson, of pymongo: MongoDB's object ids."""

DISTRIBUTION = "pymongo"
SETUP = """
from bson import ObjectId
t = str(ObjectId())
"""
CALLS = {"text": "str(ObjectId())", "value": "ObjectId()", "parse": "ObjectId(t)", "check": "ObjectId.is_valid(t)"}
