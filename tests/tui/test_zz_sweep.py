import pytest, random
from localinfer.history.store import History
from tests.tui.snapshots import stage, talks, until
from tests.tui.snapshots.replies import done
from tests.tui.test_resizing import SCREENS
from tests.tui.models_app import Around, Parts
from tests.tui.snapshots.test_models import models_of, welcome_of
async def go(app,pilot,pairs):
    for size in pairs:
        await pilot.resize_terminal(*size)
        assert app._exception is None, size
        app.screen._compositor.render_strips()
def widths():
    for w in range(1,120,2):
        yield (120,36); yield (w,20)
@pytest.mark.parametrize("name",["empty","list","typed"])
async def test_a(name):
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times); id=talks.rich(history,times)
        async with stage.opened(engine, None if name=="empty" else id) as (app,pilot):
            await pilot.resize_terminal(120,36)
            assert await until(pilot, lambda: app.chat.has_class("-wide"))
            if name=="list": await pilot.press("f3")
            if name=="typed":
                app.chat.prompt.query_one("Editor").put("日本語 hello\tworld\nfoo 👨‍👩‍👧‍👦"*4)
            await go(app,pilot,widths())
@pytest.mark.parametrize("name",[n for n in SCREENS if n not in("chat","list")])
async def test_b(name):
    rnd=random.Random(name)
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times); id=talks.rich(history,times)
        async with stage.opened(engine, id) as (app,pilot):
            await pilot.resize_terminal(120,36)
            show=SCREENS[name]
            if isinstance(show,str): await pilot.press(show)
            else: show(app)
            await pilot.pause()
            await go(app,pilot,[(rnd.choice([1,2,3,4,5,6,7,8,9,10,12,15,22,23,24,25,30,34,48,66,80,120,200,250]),rnd.choice([1,2,3,4,5,6,8,10,20,36,60])) for _ in range(40)])
@pytest.mark.parametrize("kind", ["models", "details","welcome"])
async def test_c(kind):
    rnd=random.Random(kind)
    engine = stage.engine()
    with stage.fixed(done(engine)):
        parts = Parts(stage.machine())
        try:
            app = Around(welcome_of(parts) if kind == "welcome" else models_of(parts, ("smollm2-135m", "Q4_1")))
            async with app.run_test(size=(120, 36)) as pilot:
                for _ in range(20): await pilot.pause()
                if kind=="details": await pilot.press("tab")
                await go(app,pilot,[x for w in (1,2,3,4,5,8,10,20,30,40,41,42,43,44,45,46,47,48,49,60,80,109) for x in ((120,36),(w,20),(160,rnd.choice([1,2,3,4])))])
        finally: parts.close()
