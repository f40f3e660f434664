"""Power source, battery and throttling, from each system's own words."""

import pytest

from localinfer.machine import Power, look
from localinfer.machine.power import THERMAL
from tests.machine.recorded import Recorded


@pytest.mark.parametrize(
    ("name", "power"),
    [
        ("rtx-4060-laptop", Power(source="battery", battery_percent=83)),
        ("error-999-after-sleep", Power(source="mains", battery_percent=41)),
        ("m1-8gb", Power(source="battery", battery_percent=72)),
        ("m3-max-64gb", Power(source="mains", battery_percent=100)),
        ("m4-pro-24gb", Power()),
        ("rtx-3060", Power()),
    ],
)
def test_power_is_told_as_far_as_the_system_tells_it(name: str, power: Power) -> None:
    assert look(Recorded(name)).power == power


@pytest.mark.parametrize(
    ("status", "online", "source"),
    [
        ("Discharging", "0", "battery"),
        ("Charging", "1", "mains"),
        ("Not charging", "1", "mains"),
        ("Full", "0", "mains"),
        ("Unknown", "0", None),
        ("Unknown", "1", "mains"),
        ("Discharging", "1", "mains"),  # a charger that gives less than the machine takes
        ("", "", None),
    ],
)
def test_the_words_of_linux(status: str, online: str, source: str | None) -> None:
    sources = Recorded("rtx-4060-laptop")
    sources.files["/sys/class/power_supply/BAT0/status"] = status
    sources.files["/sys/class/power_supply/AC/online"] = online
    assert look(sources).power.source == source


@pytest.mark.parametrize(("text", "percent"), [("300", 100), ("-5", 0), ("", None), ("much", None), ("57\n", 57)])
def test_a_percentage_is_one_or_is_not_told(text: str, percent: float | None) -> None:
    sources = Recorded("rtx-4060-laptop")
    sources.files["/sys/class/power_supply/BAT0/capacity"] = text
    assert look(sources).power.battery_percent == percent


def test_two_batteries_are_one() -> None:
    sources = Recorded("rtx-4060-laptop")
    for file, text in (("type", "Battery"), ("status", "Full"), ("capacity", "100")):
        sources.files[f"/sys/class/power_supply/BAT1/{file}"] = text
    assert look(sources).power == Power(source="battery", battery_percent=91.5)


@pytest.mark.parametrize(
    ("limit", "throttled"), [("62", "the processor runs at 62 % of its speed to stay cool"), ("100", ""), ("x", "")]
)
def test_a_mac_that_is_hot(limit: str, throttled: str) -> None:
    sources = Recorded("m1-8gb")
    sources.commands[" ".join(THERMAL)] = f"2026-01-20 CPU Power notify\n\tCPU_Speed_Limit \t= {limit}\n"
    assert look(sources).power.throttled == throttled


@pytest.mark.parametrize(
    ("file", "text", "throttled"),
    [
        ("/sys/class/thermal/cooling_device0/cur_state", "3", "the processor is slowed down to stay cool"),
        ("/sys/class/thermal/cooling_device0/cur_state", "0", ""),
        ("/sys/class/thermal/cooling_device0/cur_state", "hot", ""),
        ("/sys/firmware/acpi/platform_profile", "low-power", "the system's power profile is “low-power”"),
        ("/sys/firmware/acpi/platform_profile", "performance", ""),
    ],
)
def test_a_processor_that_is_slowed_down(file: str, text: str, throttled: str) -> None:
    sources = Recorded("rtx-3060")
    sources.files[file] = f"{text}\n"
    assert look(sources).power.throttled == throttled


def test_a_card_that_is_slowed_down() -> None:
    sources = Recorded("rtx-3060")
    sources.nvml.cards[0].clock_reasons = 0x20
    assert look(sources).power.throttled == "the RTX 3060 is too hot"
