"""The choice of the MAC address of new IDs, with its explanation."""

import itertools
import os

import psutil
import pytest
from helpers.commands import python

import msgid
from msgid.ids import node
from msgid.ids.node import Cards, Interface, Process, choose_card, choose_node, find_node, random_node

CARD = "00:16:3e:01:02:03"
LOCAL = "02:fc:00:00:00:01"
DOCKER = "02:42:ac:11:00:02"
BITS = 0x03_00_00_00_00_07
HOST = Process(pid=4711, pid_namespace=4026531836)


def chosen(*interfaces):
    taken, passed_over = choose_card(Interface(*interface) for interface in interfaces)
    return taken and taken.name, {candidate.name: candidate.reason for candidate in passed_over}


@pytest.mark.parametrize(
    ("better", "worse", "reason"),
    [
        (("b", CARD, True), ("a", "00:16:3e:00:00:01", False), "down; b comes first"),
        (("a", CARD, True), ("b", "00:16:3e:00:00:01", True), "later by name; a comes first"),
        (("b", CARD, False), ("a", LOCAL, True), "locally administered"),
        (("b", CARD, False), ("a", DOCKER, True), "shared by many machines: made from an IP address by Docker"),
        (("w", CARD, True), ("l", "00:16:3e:00:00:00", True), "shared by many machines: LXC's bridge on every host"),
        (("b", CARD, False), ("a", "00:16:3e:00:00:01", True, "virtual"), "a virtual interface"),
        (("b", CARD, False), ("a", "00:16:3e:00:00:01", True, "USB"), "a USB interface"),
    ],
)  # fmt: skip
def test_better_of_two_cards_is_taken_in_any_order(better, worse, reason):
    """Only hardware with an address of its own counts; cards that are up come first, then names."""
    for order in ((better, worse), (worse, better)):
        assert chosen(*order) == (better[0], {worse[0]: reason})


SHARED = [
    ("ac:de:48:00:11:22", "the internal interface of every Mac with a T1 or T2 chip"),
    ("0a:00:27:00:00:00", "VirtualBox's host-only adapter"),
    ("0a:00:27:00:00:ff", "VirtualBox's host-only adapter"),
    ("00:50:56:c0:00:08", "VMware Workstation's and Fusion's host adapters"),
    ("00:1c:42:00:00:08", "Parallels' host adapters"),
    ("52:54:00:12:34:56", "QEMU's default"),
    ("ee:ee:ee:ee:ee:ee", "Calico's end of every container's link"),
    ("02:42:ac:11:00:02", "made from an IP address by Docker"),
    ("0a:58:0a:f4:00:07", "made from an IP address by a network plugin of Kubernetes"),
    ("00:16:3e:00:00:00", "LXC's bridge on every host"),
    ("02:00:00:00:00:00", "what Android 6 and later tells every app"),
    ("0c:5b:8f:27:9a:64", "Huawei's LTE sticks"),
    ("00:00:11:12:13:14", "5G and LTE modules"),
    ("be:3a:f2:b6:05:9f", "the USB network card of IBM's and Lenovo's management controllers"),
    ("00:05:9a:3c:7a:00", "Cisco AnyConnect's virtual adapter"),
    ("00:09:0f:fe:00:01", "Fortinet FortiClient's virtual adapter"),
    ("02:50:41:00:00:01", "Palo Alto GlobalProtect's virtual adapter"),
    ("02:00:4c:4f:4f:50", "the loopback adapter of Windows"),
]


@pytest.mark.parametrize(
    ("mac", "reason"),
    [
        ("00:00:00:00:00:00", "all zero"),
        ("ff:ff:ff:ff:ff:ff", "a multicast address"),
        ("01:00:5e:00:00:01", "a multicast address"),
        *((mac, f"shared by many machines: {whose}") for mac, whose in SHARED),
        ("42:01:0a:80:00:02", "locally administered"),  # Google's machines: made from their IP address
        ("00:16:3e:01:02", "not 6 bytes"),
        ("00:00:00:00:00:00:00:e0", "not 6 bytes"),  # the address of a tunnel or of InfiniBand
        ("", "not 6 bytes"),
    ],
)
def test_address_that_is_shared_or_not_a_card_is_never_taken(mac, reason):
    """Zero, multicast, shared, local and malformed addresses are rejected with the reason, even without other cards."""
    name, reasons = chosen(("x", mac, True))
    assert name is None
    assert reasons["x"].startswith(reason)


def test_every_shared_address_and_every_service_has_a_source():
    """The tables are data: an owner and a source per row, and ranges that do not overlap."""
    ranges = sorted((first, last) for first, last, _, _ in node.SHARED_NODES)
    assert all(first <= last for first, last in ranges)
    assert all(last < following for (_, last), (following, _) in itertools.pairwise(ranges))
    assert all(whose and source for _, _, whose, source in node.SHARED_NODES)
    assert all(service and source for service, source in node.FUNCTION_SERVICES.values())
    assert len(SHARED) >= len(ranges)


def never():
    raise AssertionError("not to be asked")


def cards(*interfaces):
    return lambda: Cards("interface", tuple(Interface(*interface) for interface in interfaces))


@pytest.mark.parametrize(
    ("process", "environment", "reason"),
    [
        (HOST._replace(pid_namespace=4026532201), {}, "in a container, or another PID namespace, pids repeat"),
        (HOST._replace(pid_namespace=0), {}, "in a container, or another PID namespace, pids repeat"),
        (HOST._replace(pid=65_536), {}, "the pid does not fit its 16 bits"),
        (HOST._replace(pid=4_194_304), {}, "the pid does not fit its 16 bits"),
        (HOST._replace(is_copy=True), {}, "the process can be one of several copies"),
        (HOST._replace(is_default=False), {}, "the process can have several generators"),
        (HOST._replace(is_main_interpreter=False), {}, "the process can have several generators"),
        *((HOST, {name: "x"}, f"a function service, {service}, copies processes")
          for name, (service, _) in node.FUNCTION_SERVICES.items()),
    ],
)  # fmt: skip
def test_node_is_random_where_address_and_pid_do_not_name_one_generator(process, environment, reason):
    """No card is looked up; the caller and MSGID_NODE still decide, and `mac` takes the card in any process."""
    choice = choose_node(None, environment, process, never, BITS)
    assert choice == (BITS, "random", f"random bits: {reason}", None, ())
    for named, said in (("mac", None), (None, "mac")):
        asked = environment | ({"MSGID_NODE": said} if said else {})
        choice = choose_node(named, asked, process, cards(("eth0", CARD, True)), BITS)
        assert (choice.mac, choice.source, choice.interface) == (CARD, "interface", "eth0")
    assert choose_node(7, environment, process, never, BITS).node == 7
    assert choose_node(None, environment | {"MSGID_NODE": CARD}, process, never, BITS).mac == CARD


@pytest.mark.parametrize("process", [HOST, HOST._replace(pid=65_535), HOST._replace(pid_namespace=None)])
def test_node_is_the_card_where_address_and_pid_name_one_generator(process):
    """The PID namespace is that of the whole system, or the system has none, and the pid fits 16 bits."""
    choice = choose_node(None, {"MSGID_NODE": "", "K_SERVICE": ""}, process, cards(("eth0", CARD, False)), BITS)
    assert choice == (int(CARD.replace(":", ""), 16), "interface", "network card eth0, which is down", "eth0", ())


def test_node_of_caller_and_environment_come_first():
    """The caller decides before MSGID_NODE, which is an address, `mac` or `random`."""
    choice = choose_node(None, {"MSGID_NODE": "0A-00-27-00-00-01"}, HOST, never, BITS)
    assert (choice.mac, choice.source, choice.reason) == ("0a:00:27:00:00:01", "environment", "set by MSGID_NODE")
    choice = choose_node(None, {"MSGID_NODE": "random"}, HOST, never, BITS)
    assert (choice.node, choice.source, choice.reason) == (BITS, "environment", "random bits, set by MSGID_NODE")
    choice = choose_node("random", {"MSGID_NODE": "x"}, HOST, never, BITS)
    assert (choice.node, choice.source, choice.reason) == (BITS, "argument", "random bits, passed by the caller")
    assert choose_node(5, {"MSGID_NODE": "x"}, HOST, never, BITS) == (5, "argument", "passed by the caller", None, ())


def test_node_without_a_card_is_random_with_the_rejected_ones():
    """If no card is fit, the node is random, also for `mac`, and the choice lists each card with the reason."""
    for named in (None, "mac"):
        choice = choose_node(named, {}, HOST, cards(("lo", "00:00:00:00:00:00", True), ("tun0", "", True)), BITS)
        assert (choice.node, choice.source) == (BITS, "random")
        assert str(choice).splitlines() == [
            "03:00:00:00:00:07 (random): random bits: no network card has an address of its own",
            "  passed over lo 00:00:00:00:00:00: all zero",
            "  passed over tun0: not 6 bytes",
        ]


def test_cards_of_linux_are_read_from_files(tmp_path):
    """A card has a device, which is not on USB; what an interface does not tell is empty."""
    devices = tmp_path / "devices"
    for name, mac, state, device in [
        ("eth0", CARD, "up", "pci0/0000:00:03.0"),
        ("usb0", "0c:5b:8f:27:9a:65", "up", "pci0/0000:00:14.0/usb1/1-2/1-2:1.0"),
        ("lxcbr0", "00:16:3e:00:00:00", "down", None),
        ("tun0", None, None, None),
    ]:
        folder = tmp_path / "net" / name
        folder.mkdir(parents=True)
        if mac:
            (folder / "address").write_text(mac + "\n")
            (folder / "operstate").write_text(state + "\n")
        if device:
            (devices / device).mkdir(parents=True)
            (folder / "device").symlink_to(devices / device)
    assert sorted(node.list_cards_of_linux(str(tmp_path / "net"))) == [
        ("eth0", CARD, True, "hardware"),
        ("lxcbr0", "00:16:3e:00:00:00", False, "virtual"),
        ("tun0", "", False, "virtual"),
        ("usb0", "0c:5b:8f:27:9a:65", True, "USB"),
    ]


LISTING = """
import sys, types
sys.platform = "darwin"
import msgid.ids.node as node
link = types.SimpleNamespace(address="00-16-3E-01-02-03", family=18)
good = types.SimpleNamespace(AF_LINK=18, net_if_stats=lambda: dict(en0=types.SimpleNamespace(isup=True)),
                             net_if_addrs=lambda: dict(en0=[link, types.SimpleNamespace(address="::1", family=30)]))
def broken():
    raise OSError("no such device")
sys.modules["psutil"] = {psutil}
sys.modules["getmac"] = {getmac}
print(node._list_cards())
"""


@pytest.mark.parametrize(
    ("psutil", "getmac", "source", "names", "failed"),
    [
        ("good", "None", "interface", ["en0"], []),
        ("None", "types.SimpleNamespace(get_mac_address=lambda: '00:16:3e:01:02:03')", "default-route",
         ["default route"], ["psutil"]),
        ("None", "types.SimpleNamespace(get_mac_address=lambda: None)", "default-route", [], ["psutil"]),
        ("types.SimpleNamespace(net_if_stats=broken)", "types.SimpleNamespace(get_mac_address=broken)", "interface",
         [], ["psutil", "getmac"]),
    ],
)  # fmt: skip
def test_cards_of_other_systems_are_those_of_psutil_then_getmac(psutil, getmac, source, names, failed):
    """If a library is missing or raises, the next one is asked, and the choice has the reason."""
    result = python(LISTING.format(psutil=psutil, getmac=getmac))
    assert result.returncode == 0, result.stderr
    found = eval(result.stdout, {"Cards": Cards, "Interface": Interface, "PassedOver": node.PassedOver})
    assert found.source == source
    assert [card.name for card in found.interfaces] == names
    assert all(card.mac == CARD and card.is_up for card in found.interfaces)
    assert [candidate.name for candidate in found.failed] == failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_child_forked_while_a_thread_looks_up_the_node_mints():
    """A child that is forked during the lookup waits for no lock of its parent, and its node is random."""
    program = """
import os, signal, sys, threading
import msgid
from msgid.ids import node

begun, go_on = threading.Event(), threading.Event()
node._this_process = lambda is_default: node.Process(1)

def list_cards():
    begun.set()
    go_on.wait()
    return node.Cards("interface", ())

node._list_cards = list_cards
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
    result = python(program, MSGID_NODE="")
    assert result.stdout == "0\n", result.stderr


def test_generator_with_a_node_loads_neither_psutil_nor_getmac():
    """The libraries are needed only to look up a node: not for an argument and not for MSGID_NODE."""
    program = "import sys, msgid; {}; print({{'psutil', 'getmac'}} & set(sys.modules))"
    assert python(program.format("msgid.Generator(node=1).generate()"), MSGID_NODE="").stdout == "set()\n"
    assert python(program.format("msgid.generate_batch(3)"), MSGID_NODE="random").stdout == "set()\n"


def test_random_nodes_are_not_cards_and_differ():
    """Random nodes have the multicast bit, which no card has, and declare their origin; all 44 bits are random."""
    nodes = [random_node() for _ in range(2000)]
    assert {msgid.layout.origin_of(bits) for bits in nodes} == {"random"}
    assert len(set(nodes)) == 2000
    seen_set, seen_clear = 0, 0
    for bits in nodes:
        seen_set |= bits
        seen_clear |= ~bits
    free = 0xF0_FF_FF_FF_FF_FF
    assert seen_set & free == seen_clear & free == free


def test_explain_node_is_the_node_that_is_stamped():
    choice = msgid.explain_node()
    assert msgid.generate().mac == choice.mac
    assert choice is msgid.explain_node()
    assert str(choice).startswith(f"{choice.mac} ({choice.origin}): {choice.reason}")
    for candidate in choice.passed_over:
        assert f"passed over {candidate.name} {candidate.mac}: {candidate.reason}" in str(choice)


def test_node_of_this_machine_is_one_of_its_cards():
    macs = {a.address for addresses in psutil.net_if_addrs().values() for a in addresses if a.family == psutil.AF_LINK}
    choice = find_node("mac")
    assert choice.source != "interface" or choice.mac in macs
    assert {candidate.mac for candidate in choice.passed_over} <= {"", *macs}


def test_msgid_node_set_after_import_is_read_at_the_first_id():
    """The environment variable applies to the whole process; nothing is read at import."""
    mint = "import msgid; print(msgid.generate().mac)"
    assert python(mint, MSGID_NODE="aa:bb:cc:dd:ee:ff").stdout == "aa:bb:cc:dd:ee:ff\n"
    assert python("import msgid; print(msgid.generate().origin)", MSGID_NODE="random").stdout == "random\n"
    assert python("import msgid", MSGID_NODE="nonsense").returncode == 0


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ("nonsense", "aa:bb:cc:dd:ee:ff, mac or random"),
        (" random", "aa:bb:cc:dd:ee:ff, mac or random"),
        ("ff:ff:ff:ff:ff:ff", "an address without the multicast bit, mac or random"),
    ],
)
def test_wrong_msgid_node_raises_at_the_first_id_and_makes_none(said, form):
    """The error names the variable and quotes its value, at every call, and a generator with a node still works."""
    program = """
import msgid
for call in (msgid.generate, msgid.generate_hex, lambda: msgid.generate_batch(1), msgid.explain_node, msgid.generate,
             msgid.Generator().generate):
    try:
        print("made", call())
    except ValueError as error:
        print(error)
msgid.Generator(node=1).generate()
"""
    result = python(program, MSGID_NODE=said)
    assert result.stdout.splitlines() == [f"MSGID_NODE must be {form}, got {said!r}"] * 6, result.stderr
