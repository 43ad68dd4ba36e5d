"""Handlers for tests and for the processes that tests start."""


def append(state, message, context):
    """Append the message to the state, and publish the state on which the handler ran."""
    state = state or []
    context.publish({"before": state, "body": message.body, "random": context.random.random()})
    if message.body == "twice":
        context.publish({"id": str(context.new_id()), "now": context.now.isoformat()})
    return [*state, message.body]


def careless(state, message, context):
    """Change and publish all arguments; then fail if the body is "fail"."""
    state = state or {"seen": []}
    state["seen"].append(message.body["word"])
    message.body["word"] = "changed"
    context.publish(state)
    if state["seen"][-1] == "fail":
        raise ValueError("the word is fail")
    return state
