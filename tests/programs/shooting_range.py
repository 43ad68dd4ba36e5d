"""The shooting range of the consistent messaging article: the handler that the tutorial and the Spark tests run.

A target is at a random position of a field. A shot hits or misses it, and after three shots the target moves.
Whether a shot hits depends on where the target was when it was fired the first time, and where it moves is random: both
are what goes wrong when a shot is handled again on a later state.
"""

FIELD = 10
SHOTS = 3


def shoot(state, message, context):
    """Handle a shot at a position, or the start of a round."""
    state = state or {"target": 0, "shots": 0, "rounds": 0}
    if message.body["kind"] == "move":
        return {**state, "target": message.body["position"], "shots": 0}
    hit = message.body["position"] == state["target"]
    context.publish({"result": "hit" if hit else "miss", "target": state["target"], "shot": state["shots"]})
    shots = state["shots"] + 1
    if shots < SHOTS:
        return {**state, "shots": shots}
    context.publish({"result": "round over", "round": str(context.new_id())})
    return {"target": context.random.randrange(FIELD), "shots": 0, "rounds": state["rounds"] + 1}
