"""The graphics cards that Linux lists, whoever made them."""

from localinfer.machine import Device, look, sysfs
from tests.machine.recorded import MIB, Recorded


def with_cards(**uevents: str) -> Recorded:
    """A machine with nothing but the cards of these ids and slots: "8086:E20B 0000:03:00.0"."""
    sources = Recorded("vm-cgroup-v2")
    for entry, words in uevents.items():
        id, slot = words.split()
        text = f"DRIVER=some\nPCI_CLASS=30000\nPCI_ID={id}\nPCI_SLOT_NAME={slot}\n"
        sources.files[f"/sys/class/drm/{entry}/device/uevent"] = text
    return sources


def test_an_arc_card_is_discrete_and_known_by_name() -> None:
    (arc,) = sysfs.cards(with_cards(card0="8086:E20B 0000:03:00.0"), 0)
    assert arc == Device(id="GPU0", name="Intel Arc B580", kind="gpu", bandwidth=456e9, bandwidth_source="table")


def test_intels_integrated_gpu_is_known_by_its_slot() -> None:
    integrated, other = sysfs.cards(with_cards(card0="8086:A780 0000:00:02.0", card1="8086:56B1 0000:04:00.0"), 0)
    assert (integrated.kind, integrated.shares_ram) == ("integrated", True)
    assert (other.kind, other.shares_ram, other.name) == ("gpu", False, "Intel GPU (8086:56b1)")


def test_what_is_no_card_of_a_known_maker_is_left_out() -> None:
    sources = with_cards(card0="1A03:2000 0000:05:00.0", card1="1AF4:1050 0000:00:01.0", renderD128="10DE:2503 0:0")
    sources.files["/sys/class/drm/card0-HDMI-A-1/device/uevent"] = "PCI_ID=10DE:2503\n"
    sources.files["/sys/class/drm/card2/device/uevent"] = "DRIVER=simple-framebuffer\n"
    assert sysfs.cards(sources, 0) == ()


def test_an_nvidia_card_under_the_free_driver_has_no_driver_that_computes() -> None:
    here = look(with_cards(card0="10DE:1C82 0000:01:00.0"))
    assert [device.name for device in here.devices[:-1]] == ["NVIDIA GPU (10de:1c82)"]
    assert [problem.message for problem in here.problems] == ["There is no driver for the NVIDIA GPU (10de:1c82)."]


def test_the_revision_sets_apart_cards_of_one_model() -> None:
    sources = Recorded("rx-7900-xtx")
    sources.files["/sys/class/drm/card0/device/revision"] = "0xcc\n"
    card, _ = sysfs.cards(sources, 0)
    assert (card.name, card.bandwidth) == ("AMD Radeon RX 7900 XT", 800e9)
    sources.files["/sys/class/drm/card0/device/revision"] = "0x99\n"
    card, _ = sysfs.cards(sources, 0)
    assert (card.name, card.bandwidth) == ("AMD GPU (1002:744c)", None)


def test_what_a_processors_gpu_borrows_must_be_free() -> None:
    sources = Recorded("strix-halo-128gb")
    (gpu,) = sysfs.cards(sources, 1024 * MIB)
    assert gpu.kind == "integrated"
    assert gpu.total_bytes == (512 + 64000) * MIB
    assert gpu.free_bytes == (512 - 160 + 1024) * MIB


def test_other_systems_have_no_such_list() -> None:
    sources = Recorded("rx-7900-xtx")
    sources.system = "windows"
    assert sysfs.cards(sources, 0) == ()
