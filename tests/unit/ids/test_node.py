"""The choice of the MAC address of new IDs, with its explanation."""

import itertools
import os
import subprocess
import sys

import psutil
import pytest

import msgid
from msgid.ids.node import Interface, choose_interface, choose_node, find_node, random_node

CARD = "00:16:3e:01:02:03"
LOCAL = "02:fc:00:00:00:01"
DOCKER = "02:42:ac:11:00:02"


def chosen(*interfaces):
    taken, passed_over = choose_interface(Interface(*interface) for interface in interfaces)
    return taken and taken.name, {candidate.name: candidate.reason for candidate in passed_over}


@pytest.mark.parametrize(
    ("better", "worse", "reason"),
    [
        (("b", LOCAL, True), ("a", CARD, False), "down; b comes first"),
        (("b", CARD, True), ("a", LOCAL, True), "locally administered; b comes first"),
        (("a", CARD, True), ("b", "00:16:3e:00:00:00", True), "later by name; a comes first"),
        (("b", LOCAL, False), ("a", DOCKER, True), "derived from an IP address by Docker; b comes first"),
        (("b", DOCKER, True), ("a", "02:42:ac:11:00:03", False), "down; b comes first"),
    ],
)
def test_better_of_two_cards_is_taken_in_any_order(better, worse, reason):
    """Cards that are up come first, then universal addresses, then names; Docker's generated addresses come last."""
    for order in ((better, worse), (worse, better)):
        assert chosen(*order) == (better[0], {worse[0]: reason})


@pytest.mark.parametrize(
    ("mac", "reason"),
    [
        ("00:00:00:00:00:00", "all zero"),
        ("ff:ff:ff:ff:ff:ff", "a multicast address"),
        ("01:00:5e:00:00:01", "a multicast address"),
        ("ac:de:48:00:11:22", "shared by many machines: the internal interface of every Mac with a T1 or T2 chip"),
        ("0a:00:27:00:00:00", "shared by many machines: VirtualBox's host-only adapter"),
        ("0a:00:27:00:00:ff", "shared by many machines: VirtualBox's host-only adapter"),
        ("00:50:56:c0:00:01", "shared by many machines: VMware Workstation's and Fusion's host adapters"),
        ("00:50:56:c0:00:08", "shared by many machines: VMware Workstation's and Fusion's host adapters"),
        ("ee:ee:ee:ee:ee:ee", "shared by many machines: Calico's end of every container's link"),
        ("02:00:00:00:00:00", "shared by many machines: what Android 6 and later tells every app"),
        ("00:16:3e:01:02", "not 6 bytes"),
        ("00:00:00:00:00:00:00:e0", "not 6 bytes"),  # the address of a tunnel or of InfiniBand
        ("", "not 6 bytes"),
    ],
)
def test_address_that_is_shared_or_not_a_card_is_never_taken(mac, reason):
    """Zero, multicast, shared and malformed addresses are rejected with the reason, even without another card."""
    name, reasons = chosen(("x", mac, True))
    assert name is None
    assert reasons["x"].startswith(reason)


def test_choice_of_cards_in_any_order_is_stable():
    """The choice does not depend on the order in which the interfaces are listed."""
    interfaces = [("c", CARD, True), ("b", CARD[:-1] + "4", True), ("a", DOCKER, True), ("d", LOCAL, False)]
    assert {chosen(*order)[0] for order in itertools.permutations(interfaces)} == {"b"}


def no_mac():
    return None


def never():
    raise AssertionError("not to be asked")


def test_node_of_the_environment_comes_before_every_card():
    """MSGID_NODE is an address, or requests random bits."""
    choice = choose_node({"MSGID_NODE": "0A-00-27-00-00-01"}, never, never, 0)
    assert (choice.mac, choice.source, choice.reason) == ("0a:00:27:00:00:01", "environment", "set by MSGID_NODE")
    node = random_node()
    choice = choose_node({"MSGID_NODE": "random"}, never, never, node)
    assert (choice.node, choice.source, choice.origin) == (node, "environment", "random")


def test_node_without_environment_comes_from_card_then_route_then_random():
    """A source is used only if the previous one found nothing, and the choice names the source."""
    card, bad = Interface("eth0", CARD, True), Interface("lo", "00:00:00:00:00:00", True)
    choice = choose_node({}, lambda: [bad, card], never, 0)
    assert (choice.mac, choice.source, choice.interface) == (CARD, "interface", "eth0")
    choice = choose_node({"MSGID_NODE": ""}, lambda: [bad], lambda: CARD, 0)
    assert (choice.mac, choice.source, choice.interface) == (CARD, "default-route", None)
    assert [candidate.name for candidate in choice.passed_over] == ["lo"]
    node = random_node()
    choice = choose_node({}, lambda: [bad], lambda: "ac:de:48:00:11:22", node)
    assert (choice.node, choice.source, choice.origin) == (node, "random", "random")
    assert [candidate.name for candidate in choice.passed_over] == ["lo", "default route"]
    assert choose_node({}, list, no_mac, node).source == "random"


def fails(error):
    def ask():
        raise error

    return ask


def test_source_that_is_missing_or_broken_is_passed_over_with_the_reason():
    """If psutil or getmac is missing or raises, the next source is used, and the choice has the reason."""
    missing, broken = ImportError("No module named 'psutil'"), OSError("no such device")
    choice = choose_node({}, fails(missing), lambda: CARD, 0)
    assert (choice.mac, choice.source) == (CARD, "default-route")
    assert str(choice).splitlines()[1:] == ["  passed over psutil: ImportError: No module named 'psutil'"]
    node = random_node()
    choice = choose_node({}, fails(missing), fails(broken), node)
    assert (choice.node, choice.source) == (node, "random")
    assert str(choice).splitlines()[1:] == [
        "  passed over psutil: ImportError: No module named 'psutil'",
        "  passed over getmac: OSError: no such device",
    ]


def test_generator_without_psutil_and_getmac_mints_on_random_bits():
    """Without both libraries, IDs have random bits, and `explain_node` returns both reasons."""
    program = """
import sys
sys.modules["psutil"] = sys.modules["getmac"] = None
import msgid
print(msgid.generate().origin, [passed.name for passed in msgid.explain_node().passed_over])
"""
    result = run(program, MSGID_NODE="")
    assert result.stdout == "random ['psutil', 'getmac']\n", result.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_child_forked_while_a_thread_looks_up_the_node_mints():
    """A child that is forked during the lookup waits for no lock of its parent, and its node is random."""
    program = """
import os, signal, sys, threading, types
import msgid

begun, go_on, parent = threading.Event(), threading.Event(), os.getpid()

def net_if_stats():
    if os.getpid() == parent:
        begun.set()
        go_on.wait()
    return {}

sys.modules["psutil"] = types.SimpleNamespace(net_if_stats=net_if_stats, net_if_addrs=dict)
sys.modules["getmac"] = None
thread = threading.Thread(target=msgid.generate)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends a child that waits
    os._exit(msgid.generate().origin != "random" or "forked" not in str(msgid.explain_node()))
status = os.waitpid(child, 0)[1]
go_on.set()
thread.join()
print(status)
"""
    result = run(program, MSGID_NODE="")
    assert result.stdout == "0\n", result.stderr


def test_generator_with_a_node_loads_neither_psutil_nor_getmac():
    """The libraries are needed only to look up a node: not for an argument and not for MSGID_NODE."""
    program = "import sys, msgid; {}; print({{'psutil', 'getmac'}} & set(sys.modules))"
    assert run(program.format("msgid.Generator(node=1).generate()"), MSGID_NODE="").stdout == "set()\n"
    assert run(program.format("msgid.generate_batch(3)"), MSGID_NODE="random").stdout == "set()\n"


def test_random_nodes_are_not_cards_and_differ():
    """Random nodes have the multicast bit, which no card has, and declare their origin; all 44 bits are random."""
    nodes = [random_node() for _ in range(2000)]
    assert {msgid.layout.origin_of(node) for node in nodes} == {"random"}
    assert len(set(nodes)) == 2000
    seen_set, seen_clear = 0, 0
    for node in nodes:
        seen_set |= node
        seen_clear |= ~node
    free = 0xF0_FF_FF_FF_FF_FF
    assert seen_set & free == seen_clear & free == free


def test_explain_node_is_the_node_that_is_stamped():
    """The node of `explain_node` is the node of the IDs, and its text has the address and the rejected cards."""
    choice = msgid.explain_node()
    assert msgid.generate().mac == choice.mac
    assert choice is msgid.explain_node()
    assert str(choice).startswith(f"{choice.mac} ({choice.origin}): {choice.reason}")
    for candidate in choice.passed_over:
        assert f"passed over {candidate.name} {candidate.mac}: {candidate.reason}" in str(choice)


def test_node_of_this_machine_is_one_of_its_cards():
    """If psutil lists a card, its address is used."""
    if "MSGID_NODE" in os.environ:
        pytest.skip("MSGID_NODE is set")
    macs = {a.address for addresses in psutil.net_if_addrs().values() for a in addresses if a.family == psutil.AF_LINK}
    choice = find_node()
    assert choice.source != "interface" or choice.mac in macs


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_msgid_node_set_after_import_is_read_at_the_first_id():
    """The environment variable applies to the whole process; an invalid value raises at the first ID, not at import."""
    mint = "import msgid; print(msgid.generate().mac)"
    assert run(mint, MSGID_NODE="aa:bb:cc:dd:ee:ff").stdout == "aa:bb:cc:dd:ee:ff\n"
    assert run("import msgid; print(msgid.generate().origin)", MSGID_NODE="random").stdout == "random\n"
    assert run("import msgid", MSGID_NODE="nonsense").returncode == 0
    assert "MSGID_NODE must be aa:bb:cc:dd:ee:ff or random, got 'nonsense'" in run(mint, MSGID_NODE="nonsense").stderr


@pytest.mark.parametrize("missing", [["psutil"], ["psutil", "getmac"]])
def test_node_without_psutil_or_getmac_is_still_found(missing):
    """If psutil or getmac fails, the next source is used; the last one is random bits."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({missing!r}));"
        "import msgid; c = msgid.explain_node(); print(c.source); msgid.generate()"
    )
    result = run(program, MSGID_NODE="")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() in {"default-route", "random"}
    if "getmac" in missing:
        assert result.stdout.strip() == "random"
