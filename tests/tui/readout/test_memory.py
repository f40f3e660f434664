"""Where memory goes, by plan and by what the system says."""

import msgspec

from localinfer.models import fit
from localinfer.models.plan import Ask
from tests.models.machines import GIB, dense, machine, metal
from tests.tui.readout.replies import cpu_plan, gpu_plan, pulse
from tui.widgets.readout.memory import memory


def test_before_a_load_only_the_machine_is_shown() -> None:
    (ram,) = memory(gpu_plan(), pulse(gpu=True), loaded=False)
    assert (ram.name, ram.model_bytes, ram.programs_bytes, ram.free_bytes) == ("RAM", 0, 5 * GIB, 11 * GIB)


def test_every_planned_byte_is_somewhere() -> None:
    for plan in (cpu_plan(), gpu_plan()):
        devices = memory(plan, pulse(gpu=True), loaded=True)
        assert sum(device.model_bytes for device in devices) == plan.total_bytes


def test_what_the_model_takes_on_a_card_is_not_other_programs() -> None:
    plan = gpu_plan()
    card, ram = memory(plan, pulse(gpu=True), loaded=True)
    assert (card.id, ram.id) == ("CUDA0", "cpu")
    assert card.model_bytes == plan.bytes_on("CUDA0")
    assert card.programs_bytes == 6 * GIB - plan.bytes_on("CUDA0")
    assert card.free_bytes == 2 * GIB


def test_weights_in_the_machines_memory_are_not_in_use_for_the_system() -> None:
    plan = cpu_plan()
    (ram,) = memory(plan, pulse(), loaded=True)
    assert ram.programs_bytes == 5 * GIB - ram.kv_bytes - ram.other_bytes
    assert ram.free_bytes == 16 * GIB - 5 * GIB - ram.weights_bytes


def test_a_gpu_that_shares_the_memory_is_one_with_it() -> None:
    plan = fit.plan(dense(4, kv=512), machine(16, metal(11)), Ask())
    (both,) = memory(plan, pulse(), loaded=True)
    assert (both.id, both.name) == ("cpu", "RAM and GPU")
    assert both.model_bytes == plan.total_bytes


def test_a_card_without_a_sensor_has_no_free_memory_to_show() -> None:
    card, _ = memory(gpu_plan(), pulse(gpu=False), loaded=True)
    assert (card.total_bytes, card.programs_bytes, card.free_bytes) == (8 * GIB, None, None)
    ram = memory(cpu_plan(), None, loaded=True)[0]
    assert (ram.total_bytes, ram.programs_bytes, ram.free_bytes) == (None, None, None)


def test_states_count_as_cache_and_what_is_repacked_not_at_all() -> None:
    plan = cpu_plan()
    kv = next(term for term in plan.terms if term.kind == "kv")
    more = tuple(msgspec.structs.replace(kv, kind=kind, size_bytes=GIB) for kind in ("state", "repacked"))
    (ram,) = memory(msgspec.structs.replace(plan, terms=(*plan.terms, *more)), pulse(), loaded=True)
    assert ram.kv_bytes == kv.size_bytes + GIB
    assert ram.model_bytes == plan.total_bytes + GIB
