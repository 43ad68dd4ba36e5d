"""Handlers that tests, and the processes that they start, run."""


def append(state, message, context):
    """A handler whose state says all that happened, and whose output says on which state it was run."""
    state = state or []
    context.publish({"before": state, "body": message.body, "random": context.random.random()})
    if message.body == "twice":
        context.publish({"id": str(context.new_id()), "now": context.now.isoformat()})
    return [*state, message.body]


def careless(state, message, context):
    """A handler that changes all that it is given, and publishes it; a body "fail" makes it fail after that."""
    state = state or {"seen": []}
    state["seen"].append(message.body["word"])
    message.body["word"] = "changed"
    context.publish(state)
    if state["seen"][-1] == "fail":
        raise ValueError("the word is fail")
    return state
