"""The tutorial of `msgid.processing`: a shooting range whose shots come twice, late and in another order.

Contents are compared, not ids alone: a duplicate that is handled on a later state has the right ids and wrong words.
"""

import pytest
import shooting_range

import msgid
from msgid.processing import MemoryStore, Message, Processor, TooLate

START = 1_700_000_000_000_000


def message(number, kind, position, at=None):
    """The number-th message of the range "A"."""
    id = str(msgid.position_id("range", number, 1_700_000_000 + number))
    return Message(id, "A", {"kind": kind, "position": position}, START + number if at is None else at)


def bodies(outputs):
    return [output.body for output in outputs]


@pytest.fixture
def published():
    return []


@pytest.fixture
def processor(published):
    return Processor(MemoryStore(), shooting_range.shoot, published.extend)


def test_shot_at_a_target_hits_or_misses(processor):
    """The target is where the last message put it."""
    assert processor.handle(message(1, "move", 4)).state == {"target": 4, "shots": 0, "rounds": 0}
    assert bodies(processor.handle(message(2, "fire", 4)).outputs) == [{"result": "hit", "target": 4, "shot": 0}]
    assert bodies(processor.handle(message(3, "fire", 5)).outputs) == [{"result": "miss", "target": 4, "shot": 1}]


def test_shot_that_is_redelivered_gives_the_same_answer(processor, published):
    """The target has moved since, and still it was a hit: the same words and ids, and no state is changed."""
    processor.handle(message(1, "move", 4))
    first = processor.handle(message(2, "fire", 4))
    processor.handle(message(3, "move", 7))
    again = processor.handle(message(2, "fire", 4))
    assert again == first._replace(kind="duplicate")
    assert published == first.outputs * 2
    assert bodies(processor.handle(message(4, "fire", 7)).outputs) == [{"result": "hit", "target": 7, "shot": 0}]


def test_random_target_of_a_redelivered_message_is_the_same(processor):
    """The target's new place and the round's new id follow from the shot that ended the round."""
    shots = [message(number, "fire", 0) for number in (1, 2, 3)]
    outcomes = [processor.handle(shot) for shot in shots]
    assert outcomes[2].state["rounds"] == 1
    assert bodies(outcomes[2].outputs)[1]["result"] == "round over"
    for shot, outcome in zip(shots, outcomes, strict=True):
        assert processor.handle(shot) == outcome._replace(kind="duplicate")
    elsewhere = Processor(MemoryStore(), shooting_range.shoot, lambda outputs: None)
    assert [elsewhere.handle(shot) for shot in shots] == outcomes


def test_messages_in_another_order_are_another_game_that_repeats(processor):
    """Reordered messages are handled in the order they came; from then on that is what happened."""
    fired = processor.handle(message(2, "fire", 4))
    processor.handle(message(1, "move", 4))
    assert bodies(fired.outputs) == [{"result": "miss", "target": 0, "shot": 0}]
    for _ in range(2):
        assert processor.handle(message(2, "fire", 4)).outputs == fired.outputs


def test_message_that_changes_nothing_is_stored_too(published):
    """Or its duplicate would not be known."""

    def nothing(state, message, context):
        context.publish("seen")
        return state

    store = MemoryStore()
    processor = Processor(store, nothing, published.extend)
    kinds = [processor.handle(message(1, "fire", 1)).kind for _ in range(3)]
    assert kinds == ["new", "duplicate", "duplicate"]
    assert len(store.history("A")) == 1


def test_history_of_a_player_lists_every_state(processor):
    """Every state, with the message that made it."""
    store = processor._store
    messages = [message(1, "move", 4), message(2, "fire", 4)]
    for one in messages:
        processor.handle(one)
    history = store.history("A")
    assert [(version.version, version.id, version.at) for version in history] == [
        (1, messages[0].id, START + 1),
        (2, messages[1].id, START + 2),
    ]
    assert store.history("nobody") == []


def test_forgotten_message_is_too_late_and_never_new(processor, published):
    """A duplicate of a message that is forgotten is reported; one that is not, is answered as before."""
    messages = [message(1, "move", 4), message(2, "fire", 4), message(3, "fire", 4)]
    processor._flow._clock = iter(range(1000, 9000, 1000)).__next__
    outcomes = [processor.handle(one) for one in messages]
    assert processor.forget(3) == 2
    before = len(published)
    for one in messages[:2]:
        with pytest.raises(TooLate, match="is too late: it was handled at 1970") as caught:
            processor.handle(one)
        assert caught.value.message == one
    assert len(published) == before
    assert processor.handle(messages[2]) == outcomes[2]._replace(kind="duplicate")
    assert bodies(processor.handle(message(4, "fire", 4)).outputs) == [
        {"result": "hit", "target": 4, "shot": 2},
        *[{"result": "round over", "round": bodies(processor.handle(message(4, "fire", 4)).outputs)[1]["round"]}],
    ]
