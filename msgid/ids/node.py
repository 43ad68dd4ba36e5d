"""The choice of the node of new IDs, with an explanation.

The first rule that applies decides:

1. the argument of the caller, or the environment variable ``MSGID_NODE``;
2. random bits where a MAC address and a pid do not name one generator: see `reason_for_random_bits`;
3. the best network card of this machine; a card is hardware with a universally administered address of its own;
4. random bits with the multicast bit set, as RFC 9562 section 6.10 requires.

Linux lists the cards in ``/sys/class/net``, other systems through psutil, or the card of the default route through
getmac. The lookup runs when the first ID is made.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgid.layout import NODE_MAX, PID_MAX, SYNTHETIC_BITS, format_mac, origin_of, synthetic_node
from msgid.shared.validate import integer, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ENVIRONMENT_VARIABLE: Final = "MSGID_NODE"
MAC: Final = "mac"
RANDOM: Final = "random"

_NODE_LENGTH: Final = 6
_LOCALLY_ADMINISTERED: Final = 0x02_00_00_00_00_00
_CARDS_OF_LINUX: Final = "/sys/class/net"
_FIRST_PID_NAMESPACE: Final = 4_026_531_836  # PROC_PID_INIT_INO of Linux: pids there are those of the whole system

SHARED_NODES: Final = (
    # (first address, last address, owner, source)
    (0xAC_DE_48_00_11_22, 0xAC_DE_48_00_11_22, "the internal interface of every Mac with a T1 or T2 chip",
     "ifconfig of such Macs: en5 or iBridge"),
    (0x0A_00_27_00_00_00, 0x0A_00_27_00_00_FF, "VirtualBox's host-only adapter",
     "virtualbox.org: src/VBox/HostDrivers/VBoxNetAdp"),
    (0x00_50_56_C0_00_00, 0x00_50_56_C0_00_FF, "VMware Workstation's and Fusion's host adapters (vmnet1, vmnet8)",
     "ifconfig and ipconfig of their hosts"),
    (0x00_1C_42_00_00_00, 0x00_1C_42_00_00_0F, "Parallels' host adapters (vnic0, vnic1)",
     "ifconfig of its hosts: vnic0 has 00:1c:42:00:00:08"),
    (0x52_54_00_12_34_56, 0x52_54_00_12_34_56, "QEMU's default for the first card of a machine",
     "qemu.org: net/net.c"),
    (0xEE_EE_EE_EE_EE_EE, 0xEE_EE_EE_EE_EE_EE, "Calico's end of every container's link",
     "docs.tigera.io: Calico, frequently asked questions"),
    (0x02_42_00_00_00_00, 0x02_42_FF_FF_FF_FF, "made from an IP address by Docker",
     "github.com/moby/moby: libnetwork/netutils, GenerateMACFromIP"),
    (0x0A_58_00_00_00_00, 0x0A_58_FF_FF_FF_FF, "made from an IP address by a network plugin of Kubernetes",
     "github.com/containernetworking/plugins: pkg/utils/hwaddr"),
    (0x00_16_3E_00_00_00, 0x00_16_3E_00_00_00, "LXC's bridge on every host",
     "github.com/lxc/lxc: config/init/common/lxc-net.in, LXC_BRIDGE_MAC"),
    (0x02_00_00_00_00_00, 0x02_00_00_00_00_00, "what Android 6 and later tells every app",
     "developer.android.com: Android 6.0 changes, access to hardware identifier"),
    (0x0C_5B_8F_27_9A_64, 0x0C_5B_8F_27_9A_64, "Huawei's LTE sticks in HiLink mode",
     "the same address in unrelated public reports of E3372 and E8372 sticks"),
    (0x00_00_11_12_13_14, 0x00_00_11_12_13_14, "5G and LTE modules that appear as a network card on USB (RNDIS)",
     "probes of such modules in public repositories of OpenWrt users"),
    (0xBE_3A_F2_B6_05_9F, 0xBE_3A_F2_B6_05_9F, "the USB network card of IBM's and Lenovo's management controllers",
     "hardware listings of unrelated servers: usb0 with 169.254.3.1"),
    (0x00_05_9A_3C_7A_00, 0x00_05_9A_3C_7A_00, "Cisco AnyConnect's virtual adapter",
     "inventories of Windows machines, with the name of the adapter"),
    (0x00_09_0F_FE_00_01, 0x00_09_0F_FE_00_01, "Fortinet FortiClient's virtual adapter",
     "lists of adapters that inventories ignore"),
    (0x02_50_41_00_00_01, 0x02_50_41_00_00_01, "Palo Alto GlobalProtect's virtual adapter",
     "knowledgebase.paloaltonetworks.com: kA10g000000CmAOCA0"),
    (0x02_00_4C_4F_4F_50, 0x02_00_4C_4F_4F_50, "the loopback adapter of Windows, which Npcap uses",
     "learn.microsoft.com: Microsoft KM-TEST Loopback Adapter; the last bytes spell LOOP"),
)  # fmt: skip
"""Addresses that many machines have, each with a source."""

FUNCTION_SERVICES: Final = {
    # environment variable: (service, source)
    "AWS_LAMBDA_FUNCTION_NAME": ("AWS Lambda", "docs.aws.amazon.com: Lambda, defined runtime environment variables"),
    "K_SERVICE": ("Cloud Run or Knative", "cloud.google.com: Cloud Run, container runtime contract"),
    "CLOUD_RUN_JOB": ("a job of Cloud Run", "cloud.google.com: Cloud Run, container runtime contract"),
    "FUNCTION_TARGET": ("Google Cloud Functions", "cloud.google.com: functions, runtime environment variables"),
    "FUNCTIONS_WORKER_RUNTIME": ("Azure Functions", "learn.microsoft.com: Azure Functions, app settings reference"),
    "FC_FUNCTION_NAME": ("Alibaba Function Compute", "alibabacloud.com: Function Compute, environment variables"),
    "SCF_FUNCTIONNAME": ("Tencent SCF", "cloud.tencent.com: SCF, environment variables"),
    "__OW_ACTION_NAME": ("OpenWhisk", "openwhisk.apache.org: actions, accessing action metadata"),
}
"""The environment variables that function services set. They copy processes from snapshots, or reuse addresses."""


class Interface(NamedTuple):
    """A network interface as the operating system lists it."""

    name: str
    mac: str
    is_up: bool
    kind: Literal["hardware", "virtual", "USB"] = "hardware"


class PassedOver(NamedTuple):
    """A rejected candidate, or a library that failed. A library has an empty ``mac``."""

    name: str
    mac: str
    reason: str


class Cards(NamedTuple):
    """The network interfaces of a machine, and the libraries that failed to list them."""

    source: Literal["interface", "default-route"]
    interfaces: tuple[Interface, ...]
    failed: tuple[PassedOver, ...] = ()


class Process(NamedTuple):
    """The process that makes IDs, as far as the choice of the node depends on it."""

    pid: int
    pid_namespace: int | None = None
    """The inode of ``/proc/self/ns/pid``; 0 if Linux does not tell it, and None on other systems."""
    is_default: bool = True
    """Whether the IDs are those of the functions of `msgid`, and not of another generator of the process."""
    is_main_interpreter: bool = True
    is_copy: bool = False
    """Whether `msgid.reseed` was called in the process, or in the parent that forked it."""


class NodeChoice(NamedTuple):
    """The node of a generator's IDs and how it was chosen. ``str()`` returns the explanation.

    Attributes:
        node: The node as an integer of 48 bits.
        source: ``argument``, ``environment``, ``interface`` (a network card), ``default-route`` (the card that getmac
            names) or ``random``.
        reason: The rule that decided, in words.
        interface: Name of the network interface; None if the node is not an interface's address.
        passed_over: The rejected candidates, each with the reason.

    >>> import msgid
    >>> print(msgid.Generator(node="56:f7:e7:1c:36:1b").explain_node())
    56:f7:e7:1c:36:1b (mac): passed by the caller
    """

    node: int
    source: Literal["argument", "environment", "interface", "default-route", "random"]
    reason: str
    interface: str | None = None
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def mac(self) -> str:
        """The node as the text of a MAC address."""
        return format_mac(self.node)

    @property
    def origin(self) -> str:
        """The origin that the node declares; see `msgid.layout.origin_of`."""
        return origin_of(self.node)

    def __str__(self) -> str:
        lines = [f"{self.mac} ({self.origin}): {self.reason}"]
        lines += [f"  passed over {' '.join(filter(None, p[:2]))}: {p.reason}" for p in self.passed_over]
        return "\n".join(lines)


def read_mac(text: str) -> int:
    """Parse a MAC address, ``aa:bb:cc:dd:ee:ff`` or ``aa-bb-cc-dd-ee-ff``, as an integer of 48 bits.

    Raises:
        ValueError: if the text has another form.

    >>> hex(read_mac("56:F7:e7:1c:36:1b"))
    '0x56f7e71c361b'
    """
    parts = text.replace("-", ":").split(":")
    if len(parts) == _NODE_LENGTH and {len(part) for part in parts} == {2}:
        try:
            raw = bytes.fromhex("".join(parts))
        except ValueError:
            raw = b""
        if len(raw) == _NODE_LENGTH:
            return int.from_bytes(raw, "big")
    raise ValueError(f"a MAC address must be of the form aa:bb:cc:dd:ee:ff, got {quote(text)}")


def read_node(node: object) -> int | str:
    """Check the ``node`` argument of a caller: an int, 6 bytes, a MAC address, ``"mac"`` or ``"random"``.

    Raises:
        TypeError, ValueError: if the node has the wrong type or form, or is a multicast address.

    >>> read_node("56:f7:e7:1c:36:1b") == read_node(0x56F7E71C361B), read_node("mac")
    (True, 'mac')
    """
    if isinstance(node, str):
        if node in {MAC, RANDOM}:
            return node
        number = read_mac(node)
    elif isinstance(node, bytes | bytearray):
        if len(node) != _NODE_LENGTH:
            raise ValueError(f"node must be {_NODE_LENGTH} bytes, got {quote(node)}")
        number = int.from_bytes(node, "big")
    elif isinstance(node, int):
        number = integer("node", node, 0, NODE_MAX)
    else:
        raise TypeError(
            f"node must be an int, {_NODE_LENGTH} bytes, aa:bb:cc:dd:ee:ff, mac or random, got {quote(node)}"
        )
    if origin_of(number) != "mac":
        raise ValueError(f"node must not be a multicast address, which declares an origin, got {quote(node)}")
    return number


def random_node() -> int:
    """Return a random node that no network card can have.

    >>> from msgid.layout import origin_of
    >>> origin_of(random_node())
    'random'
    """
    return synthetic_node("random", int.from_bytes(os.urandom(6), "big") >> (48 - SYNTHETIC_BITS))


def _objection(card: Interface) -> str | None:
    """Return the reason why a card does not identify one machine; None if it does."""
    try:
        node = read_mac(card.mac)
    except ValueError:
        return "not 6 bytes"
    if node == 0:
        return "all zero"
    if origin_of(node) != "mac":
        return "a multicast address"
    whose = shared_by(node)
    if whose is not None:
        return f"shared by many machines: {whose}"
    if node & _LOCALLY_ADMINISTERED:
        return "locally administered"
    return None if card.kind == "hardware" else f"a {card.kind} interface"


def shared_by(node: int) -> str | None:
    """Return whose address a node is if many machines are known to share it; else None.

    >>> shared_by(0xACDE48001122)
    'the internal interface of every Mac with a T1 or T2 chip'
    """
    return next((whose for first, last, whose, _ in SHARED_NODES if first <= node <= last), None)


def choose_card(cards: Iterable[Interface]) -> tuple[Interface | None, tuple[PassedOver, ...]]:
    """Return the network card whose address belongs to this machine only, and the rejected cards.

    A card is hardware and does not come and go on USB. Its address is universally administered, and not one that is
    commonly shared. Cards that are up come first. Ties are broken by name, so the choice is stable.

    >>> cards = [Interface("docker0", "02:42:ac:11:00:01", True), Interface("eth0", "00:16:3e:01:02:03", True)]
    >>> choose_card(cards)[0].name
    'eth0'
    """
    cards = sorted(cards, key=lambda card: (not card.is_up, card.name))
    objections = [(card, _objection(card)) for card in cards]
    taken = next((card for card, objection in objections if objection is None), None)
    passed_over = []
    for card, objection in objections:
        if taken is None or card is not taken:
            behind = taken and f"{'later by name' if card.is_up == taken.is_up else 'down'}; {taken.name} comes first"
            passed_over.append(PassedOver(card.name, card.mac, objection or behind or ""))
    return taken, tuple(passed_over)


def reason_for_random_bits(environment: Mapping[str, str], process: Process) -> str | None:
    """Return why a MAC address and the pid do not name one generator; None if they do.

    >>> reason_for_random_bits({}, Process(pid=70_000))
    'the pid does not fit its 16 bits'
    """
    if process.is_copy:
        return "the process can be one of several copies"
    if not process.is_default or not process.is_main_interpreter:
        return "the process can have several generators"
    service = next((service for name, (service, _) in FUNCTION_SERVICES.items() if environment.get(name)), None)
    if service is not None:
        return f"a function service, {service}, copies processes"
    if process.pid_namespace not in {None, _FIRST_PID_NAMESPACE}:
        return "in a container, or another PID namespace, pids repeat"
    if process.pid > PID_MAX:
        return "the pid does not fit its 16 bits"
    return None


def choose_node(
    named: int | str | None,
    environment: Mapping[str, str],
    process: Process,
    list_cards: Callable[[], Cards],
    random_bits: int,
) -> NodeChoice:
    """Return the node by the first of the rules of this module's docstring that applies.

    Args:
        named: The result of `read_node`; None if the caller does not name a node.
        environment: The environment variables.
        process: The facts of the process.
        list_cards: Returns the network cards; called only if one is needed.
        random_bits: The node that is chosen if the rules ask for random bits.

    Raises:
        ValueError: if ``MSGID_NODE`` is not a MAC address, ``mac`` or ``random``.
    """
    source: Literal["argument", "environment"] = "argument"
    asked = "passed by the caller"
    if named is None and environment.get(ENVIRONMENT_VARIABLE):
        source, asked = "environment", f"set by {ENVIRONMENT_VARIABLE}"
        said = environment[ENVIRONMENT_VARIABLE]
        try:
            named = read_node(said)
        except ValueError as error:
            form = "aa:bb:cc:dd:ee:ff, mac or random"
            if "multicast" in str(error):
                form = "an address without the multicast bit, mac or random"
            raise ValueError(f"{ENVIRONMENT_VARIABLE} must be {form}, got {quote(said)}") from None
    if isinstance(named, int):
        return NodeChoice(named, source, asked)
    if named == RANDOM:
        return NodeChoice(random_bits, source, f"random bits, {asked}")
    reason = None if named == MAC else reason_for_random_bits(environment, process)
    if reason is not None:
        return NodeChoice(random_bits, "random", f"random bits: {reason}")
    cards = list_cards()
    taken, passed_over = choose_card(cards.interfaces)
    passed_over += cards.failed
    if taken is None:
        reason = "random bits: no network card has an address of its own"
        return NodeChoice(random_bits, "random", reason, None, passed_over)
    reason = f"network card {taken.name}, which is {'up' if taken.is_up else 'down'}"
    return NodeChoice(read_mac(taken.mac), cards.source, reason, taken.name, passed_over)


def list_cards_of_linux(folder: str = _CARDS_OF_LINUX) -> tuple[Interface, ...]:
    """Return the network interfaces that Linux lists in a folder of files."""

    def read(name: str, file: str) -> str:
        try:
            with open(os.path.join(folder, name, file), "rb") as stream:  # text needs the import of a codec
                return stream.read().decode("ascii", "replace").strip()
        except OSError:  # some interfaces have no address, and an interface can vanish
            return ""

    def kind(name: str) -> Literal["hardware", "virtual", "USB"]:
        device = os.path.join(folder, name, "device")
        if not os.path.exists(device):
            return "virtual"
        return "USB" if "/usb" in os.path.realpath(device) else "hardware"

    return tuple(
        Interface(name, read(name, "address"), read(name, "operstate") == "up", kind(name))
        for name in os.listdir(folder)
    )


def _list_cards() -> Cards:
    if sys.platform == "linux":
        try:
            return Cards("interface", list_cards_of_linux())
        except OSError as error:
            return Cards("interface", (), (PassedOver(_CARDS_OF_LINUX, "", f"{type(error).__name__}: {error}"),))
    failed = []
    for library, source, ask in (
        ("psutil", "interface", _cards_of_psutil),
        ("getmac", "default-route", _card_of_getmac),
    ):
        try:
            return Cards(source, ask(), tuple(failed))
        except Exception as error:  # both read files and run commands, which can raise any error
            failed.append(PassedOver(library, "", f"{type(error).__name__}: {error}"))
    return Cards("interface", (), tuple(failed))


def _cards_of_psutil() -> tuple[Interface, ...]:
    import psutil

    up = {name: stats.isup for name, stats in psutil.net_if_stats().items()}
    return tuple(
        Interface(name, address.address.lower().replace("-", ":"), up.get(name, False))
        for name, addresses in psutil.net_if_addrs().items()
        for address in addresses
        if address.family == psutil.AF_LINK
    )


def _card_of_getmac() -> tuple[Interface, ...]:
    import getmac

    mac = getmac.get_mac_address()
    return () if mac is None else (Interface("default route", mac, True),)


def _this_process(is_default: bool) -> Process:
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino if sys.platform == "linux" else None
    except OSError:
        namespace = 0
    return Process(os.getpid(), namespace, is_default, _IS_MAIN_INTERPRETER, _is_copy)


def _is_main_interpreter() -> bool:
    try:
        name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
        interpreters = importlib.import_module(name)
    except ImportError:  # other implementations of Python have one interpreter
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


_IS_MAIN_INTERPRETER: Final = _is_main_interpreter()  # no import at the first ID: a signal handler can interrupt it

_is_copy = False


def note_copies() -> None:
    """Note that this process can be one of several copies."""
    global _is_copy
    _is_copy = True


_cards: Cards | None = None
_finder: int | None = None
"""The process in which a lookup began; in a forked child, the parent whose lookup the fork interrupted."""


def _known_cards() -> Cards:
    """Return the cards of this machine. The lookup runs once; threads that look up at once find the same cards."""
    global _cards, _finder
    if _cards is None:
        if _finder not in {None, os.getpid()}:
            # psutil may be half imported for ever: no thread of this process goes on with its import.
            reason = "the process was forked during the lookup"
            return Cards("interface", (), (PassedOver("network cards", "", reason),))
        _finder = os.getpid()
        _cards = _list_cards()
    return _cards


def find_node(named: int | str | None = None, *, is_default: bool = True) -> NodeChoice:
    """Return the node of a generator that begins in this process; see `choose_node`.

    A child that is forked while another thread looks up the cards has a random node.

    Raises:
        ValueError: if ``MSGID_NODE`` is not a MAC address, ``mac`` or ``random``.
    """
    return choose_node(named, os.environ, _this_process(is_default), _known_cards, random_node())
