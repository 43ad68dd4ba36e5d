"""The decorator: a handler becomes a processor, with the same settings, errors and results."""

import pytest

from msgid.processing import MemoryStore, Message, Processor, processor

ID = "0156F7E71C361B21BC024CCDBE00000000"


def add(state, message, context):
    """Add up the messages of a key."""
    context.publish({"total": (state or 0) + message.body})
    return (state or 0) + message.body


def test_decorated_handler_is_a_processor_of_its_name():
    """It has the name, the states and the outputs of a `Processor` of the same function."""
    store, published = MemoryStore(), []
    total = processor(store, published.extend)(add)
    assert isinstance(total, Processor)
    assert total.handle(Message(ID, "k", 5)).kind == "new"
    same = Processor(store, add, published.extend)
    assert same.handle(Message(ID, "k", 5)).kind == "duplicate"
    assert (total.name, total.history("k")) == (same.name, same.history("k"))
    assert published == [published[0]] * 2


def test_settings_are_those_of_a_processor():
    """Each setting reaches the processor: the name, the attempts, the dead letters and the stored outputs."""
    store, letters, tries = MemoryStore(), [], []

    @processor(store, name="fails", attempts=2, dead_letter=letters.append)
    def fail(state, message, context):
        tries.append(message.id)
        raise ValueError("bad")

    assert fail.name == "fails"
    assert fail.handle(Message(ID, "k", 5)).kind == "failed"
    assert (len(tries), [letter.error for letter in letters]) == (2, ["ValueError: bad"])

    @processor(store, list, name="kept", keep_outputs=True)
    def kept(state, message, context):
        tries.append("kept")
        context.publish(1)

    assert [kept.handle(Message(ID, "k", 5)).outputs[0].body for _ in range(2)] == [1, 1]
    assert tries.count("kept") == 1


def test_output_without_a_publisher_is_not_lost():
    """The message is not handled to its end, so it is delivered again, and a processor that publishes sends it."""
    store, published = MemoryStore(), []
    silent = processor(store)(add)
    with pytest.raises(TypeError, match="publish must be given to @processor, because the handler has published: Out"):
        silent.handle(Message(ID, "k", 5))
    assert processor(store, published.extend)(add).handle(Message(ID, "k", 5)).kind == "duplicate"
    assert [output.body for output in published] == [{"total": 5}]


async def coroutine(state, message, context): ...


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda: processor(add), "store must be a store, such as MemoryStore(), got <function add"),
     (lambda: processor(MemoryStore())(coroutine), "handler must be a plain function; AsyncProcessor takes coroutine"),
     (lambda: processor(MemoryStore(), "totals")(add), "publish must be a function, got 'totals'")],
)  # fmt: skip
def test_mistakes_are_told_where_the_handler_is_defined(make, words):
    """No message has been handled then."""
    with pytest.raises(TypeError) as caught:
        make()
    assert words in str(caught.value)
