"""A module that isn't known keeps its weights where what it is given has a graph: a step between its forward
and a backward through it comes too early."""

from __future__ import annotations

import textwrap

import pytest
from short import analysis, kinds

EARLY = "step_before_backward"


def trained(turn: str, made: str = "") -> str:
    """A function that gets two modules and a third as arguments, with an optimizer for each of the two."""
    before, body = (textwrap.indent(textwrap.dedent(one).strip(), " " * 4) for one in (made, turn))
    return f"""
from somewhere import loss_of

def train(gen, dis, head, batches):
    opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(dis.parameters(), lr=0.1)
{before}
    for z, x in batches:
{textwrap.indent(body, "    ")}
"""


JOINT = """
fake = gen(z)
d_loss = {d_loss}
g_loss = {g_loss}
opt_d.zero_grad()
d_loss.backward()
{step}
opt_g.zero_grad()
g_loss.backward()
opt_g.step()
"""
D_LOSS = "dis(fake.detach()).mean() - dis(x).mean()"
STEP = "opt_d.step()"
BROKEN = {
    "the critic steps before the backward through what it said": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="-dis(fake).mean()", step=STEP)
    ),
    "what it said is given to a loss that is not known": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="loss_of(dis(fake), True)", step=STEP)
    ),
    "both losses are made by one that is not known": trained(
        JOINT.format(
            d_loss="loss_of(dis(fake.detach()), False) + loss_of(dis(x), True)",
            g_loss="loss_of(dis(fake), True) + 10 * (fake - x).abs().mean()",
            step=STEP,
        )
    ),
    "the generator steps on a graph that is kept": trained("""
        score = dis(gen(z.requires_grad_()))
        opt_g.zero_grad()
        score.mean().backward(retain_graph=True)
        opt_g.step()
        opt_d.zero_grad()
        (1 - score).mean().backward()
        opt_d.step()
    """),
    "one of several things that the critic is given has a graph": trained(
        JOINT.format(
            d_loss="dis(torch.cat([x, z])).mean()",
            g_loss="-dis(torch.cat([x, gen(z)])).mean()",
            step=STEP,
        )
    ),
    "the critic learns nothing while it judges for the generator": trained("""
        dis.requires_grad_(False)
        g_loss = -dis(gen(z)).mean()
        dis.requires_grad_(True)
        opt_d.zero_grad()
        dis(x).mean().backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
    """),
    "a part of what the generator has returned": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="-dis(fake).mean()", step=STEP).replace("gen(z)", "gen(z).images")
    ),
    "a part of what the critic has returned": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="-dis(fake)[0].mean()", step=STEP)
    ),
    "a module is built by what is not known": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="-dis(fake).mean()", step=STEP),
        made="""
            dis = loss_of.build()
            opt_d = torch.optim.Adam(dis.parameters())
        """,
    ),
}
HEALTHY = {
    "the generator's loss is built after the step": trained("""
        fake = gen(z)
        opt_d.zero_grad()
        dis(fake.detach()).mean().backward()
        opt_d.step()
        opt_g.zero_grad()
        (-dis(fake)).mean().backward()
        opt_g.step()
    """),
    "both steps stand behind both backwards": trained("""
        fake = gen(z)
        d_loss, g_loss = dis(fake.detach()).mean(), -dis(fake).mean()
        opt_d.zero_grad()
        opt_g.zero_grad()
        d_loss.backward()
        g_loss.backward()
        opt_d.step()
        opt_g.step()
    """),
    "what the critic says is cut off": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="dis(fake).detach().mean() + fake.mean()", step=STEP)
    ),
    "the critic's word is a number in the later loss": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="fake.mean() * dis(fake).mean().item()", step=STEP)
    ),
    "the later loss has nothing of the critic": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="head(fake).mean()", step=STEP)
    ),
    "the critic says it where nothing is recorded": trained("""
        fake = gen(z)
        with torch.no_grad():
            weight = dis(fake)
        g_loss = (fake * weight).mean()
        opt_d.zero_grad()
        dis(x).mean().backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
    """),
    "a part of what was cut off": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="fake.mean() + dis(told).mean()", step=STEP).replace(
            "fake = gen(z)", "fake = gen(z)\nwith torch.no_grad():\n    told = gen(z).images"
        )
    ),
    "a module of one layer is given data": trained("""
        mid = dis(x)
        opt_d.zero_grad()
        mid.mean().backward(retain_graph=True)
        opt_d.step()
        opt_g.zero_grad()
        (gen(z).mean() * mid.mean()).backward()
        opt_g.step()
    """),
    "what steps holds another module": trained(
        JOINT.format(d_loss="head(fake.detach()).mean()", g_loss="dis(fake).mean()", step="opt_h.step()"),
        made="opt_h = torch.optim.SGD(head.parameters(), lr=0.1)",
    ),
    "what steps is not known to hold it": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="dis(fake).mean()", step="opt_h.step()"),
        made="opt_h = loss_of(dis, head)",
    ),
    "what steps holds some of its parameters": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="dis(fake).mean()", step="opt_b.step()"),
        made="opt_b = torch.optim.SGD([p for n, p in dis.named_parameters() if 'bias' in n], lr=0.1)",
    ),
    "the critic is frozen": trained(
        JOINT.format(d_loss="dis(fake).mean() + x.mean()", g_loss="dis(gen(z)).mean()", step=STEP),
        made="dis.requires_grad_(False)",
    ),
    "nothing has come to the critic when its optimizer steps": trained(
        JOINT.format(d_loss="fake.mean()", g_loss="dis(gen(z)).mean()", step=STEP)
    ),
    "backward runs the critic again": trained(
        JOINT.format(
            d_loss=D_LOSS,
            g_loss="-again.checkpoint(dis, fake, use_reentrant=False).mean()",
            step=STEP,
        ),
        made="from torch.utils import checkpoint as again",
    ),
    "backward runs a critic again whose layers are known": trained(
        JOINT.format(
            d_loss=D_LOSS,
            g_loss="-again.checkpoint(dis, fake, use_reentrant=False).mean()",
            step=STEP,
        ),
        made="""
            from torch.utils import checkpoint as again
            dis = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
            opt_d = torch.optim.SGD(dis.parameters(), lr=0.1)
        """,
    ),
    "the critic says how much something else weighs": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="(loss_of(dis(fake)) * fake).mean()", step=STEP)
    ),
    "the weights of a copy are another's": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="-other(fake).mean()", step=STEP),
        made="import copy\nother = copy.deepcopy(dis)",
    ),
    "each turn's state is given to the next": """
from somewhere import loss_of

def train(model, state, batches):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        out, state = model(x, state)
        opt.zero_grad()
        loss_of(out, y).backward()
        opt.step()
""",
    "a loss that is not known is given another one that is not known": trained(
        JOINT.format(d_loss=D_LOSS, g_loss="loss_of(dis(fake), head.say(z))", step=STEP)
    ),
}


@pytest.mark.parametrize("program", BROKEN.values(), ids=BROKEN)
def test_a_module_that_is_not_known_needs_the_weights_that_it_ran_with(program: str) -> None:
    assert EARLY in kinds(program)
    assert [one.certainty for one in analysis(program).defects if one.kind == EARLY] == ["likely"]


@pytest.mark.parametrize("program", HEALTHY.values(), ids=HEALTHY)
def test_a_step_is_not_too_early_where_nothing_later_needs_the_weights_for_sure(program: str) -> None:
    assert EARLY not in kinds(program)


BETWEEN = """
def train(enc, shift, head, batches):
    first = torch.optim.SGD(shift.parameters(), lr=0.1)
    second = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
    for x in batches:
        mid = shift(enc(x))
        first.zero_grad()
        mid.mean().backward(retain_graph=True)
        first.step()
        second.zero_grad()
        {later}.mean().backward()
        second.step()
"""


@pytest.mark.parametrize(
    ("later", "certainty"),
    [
        pytest.param("head(mid)", "suspect", id="between two others"),
        pytest.param("(1 - mid).square()", "likely", id="the last one"),
    ],
)
def test_a_module_between_others_may_only_add_something_to_what_it_is_given(
    later: str, certainty: str
) -> None:
    found = analysis(BETWEEN.format(later=later)).defects
    assert [one.certainty for one in found if one.kind == EARLY] == [certainty]


IMPORTED = """
from nets import gen, dis
from nets import loss_of

opt_d = torch.optim.Adam(dis.parameters())
opt_g = torch.optim.Adam(gen.parameters())
for x in torch.ones(3, 8, 4):
    fake = gen(x)
    d_loss = loss_of(dis(fake.detach()), False) + loss_of(dis(x), True)
    {before}g_loss = loss_of(dis(fake), True)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    {behind}g_loss = loss_of(dis(fake), True)
    {clear}.zero_grad()
    g_loss.backward()
    opt_g.step()
"""


@pytest.mark.parametrize(
    ("between", "certainty"), [("after()", "suspect"), ("pass", "likely")], ids=["a call", "nothing"]
)
def test_who_can_import_a_module_can_clear_its_gradients(between: str, certainty: str) -> None:
    found = analysis(f"""
        from nets import gen, after

        opt = torch.optim.Adam(gen.parameters())
        for x in torch.ones(3, 8, 4):
            gen(x).mean().backward()
            opt.step()
            {between}
    """)
    assert [one.certainty for one in found.defects] == [certainty]


@pytest.mark.parametrize(
    ("before", "behind", "found"),
    [("", "# ", {EARLY}), ("# ", "", set())],
    ids=["built before the step", "built behind the step"],
)
@pytest.mark.parametrize("clear", ["opt_g", "gen"])
def test_an_imported_name_that_is_asked_for_its_parameters_is_a_module(
    before: str, behind: str, found: set[str], clear: str
) -> None:
    assert kinds(IMPORTED.format(before=before, behind=behind, clear=clear)) == found
