"""Blocks that ask a tensor what it is before they do something, that watch it, or lay a weight aside for a call."""

from __future__ import annotations

from .bodies import Body
from .world import under


def asked(body: Body) -> None:
    """What may fail is asked first, or tried."""
    dice, h = body.world.dice, body.h
    peak = body.attribute("peak")
    body.made.append(f"{peak} = 0.0")
    body.lines += dice.one(
        under(f"if {h}.requires_grad:", [f"{h}.retain_grad()"]),
        under("try:", [f"{h}.retain_grad()"]) + under("except RuntimeError:", ["pass"]),
        under("try:", [f"{peak} = float({h}.numpy().max())"])
        + under("except RuntimeError:", [f"{peak} = float({h}.detach().numpy().max())"]),
        under("try:", [f"{peak} = {h}.numpy().max()"]) + under("except Exception:", [f"{peak} = 0.0"]),
        under(f"if {h}.grad_fn is not None:", [f"{peak} = {h}.grad_fn.name()"]),
        under(f"if {h}.grad_fn:", [f"{h} = {h} * 1.0"]),
        under(f"if not {h}.requires_grad:", [f"{h} = {h}.detach()"]),
        under(f"if {h}.is_leaf:", [f"{h} = {h}.clone()"]),
        under(
            f"if torch.is_grad_enabled() and {h}.requires_grad:",
            [f"{h}.register_hook(lambda grad: grad.clamp(-1, 1))"],
        ),
        under(f"if {h}.requires_grad:", [f"{peak} = {h}.detach().numpy().max()"])
        + under("else:", [f"{peak} = {h}.numpy().max()"]),
        under(f"if {h}.grad_fn is None:", [f"{h} = {h}.clone()", f"{h} += 0.0"]),
        [f"{h}.retain_grad() if {h}.requires_grad else None"],
    )


def watched(body: Body) -> None:
    """Hooks on modules, which look, change or count."""
    dice, layer = body.world.dice, body.linear(stem="watched")
    seen = body.make("outputs", "[]")
    form = dice.randint(0, 4)
    if form == 0:
        keep = body.attribute("record").removeprefix("self.")
        body.methods += [
            *under(f"def {keep}(self, module, given, out):", [f"{seen}.append(out.detach())"]),
            "",
        ]
        body.made.append(f"{layer}.register_forward_hook(self.{keep})")
    elif form == 1:
        body.made.append(f"{layer}.register_forward_pre_hook(lambda module, given: (given[0] * 0.9,))")
    elif form == 2:
        body.made.append(f"{layer}.register_forward_hook(lambda module, given, out: out * 1.1)")
    elif form == 3:
        body.made.append(f"{layer}.weight.register_hook(lambda grad: grad * 0.5)")
    else:
        body.lines.append(
            f"handle = {layer}.register_forward_hook(lambda module, given, out: {seen}.append(out.mean().item()))"
        )
    body.lines.append(f"{seen}.clear()")
    body.go(f"{layer}({body.h})")
    if form == 4:
        body.lines.append("handle.remove()")


def laid_aside(body: Body) -> None:
    """A weight that is another one during a call that is only looked at."""
    dice, layer, h = body.world.dice, body.linear(stem="quantised"), body.h
    kept, rough = body.local("kept"), body.local("rough")
    other = dice.one(f"{kept}.sign()", f"torch.round({kept} * 4) / 4", f"{kept} / ({kept}.norm() + 1e-6)")
    take = [f"{kept} = {layer}.weight.data{dice.one('', '.clone()')}", f"{layer}.weight.data = {other}"]
    back, call = f"{layer}.weight.data = {kept}", f"{rough} = {layer}({h})"
    tried = [*under("try:", [call]), *under("finally:", [back])]
    body.lines += under("with torch.no_grad():", [*take, *dice.one([call, back], tried)])
    body.go(dice.one(f"{layer}({h}) + {rough}", f"{layer}({h}) + 0.1 * ({rough} - {h})"))


def gently(body: Body) -> None:
    """A layer that is tried in another way first."""
    dice, layer, h = body.world.dice, body.linear(), body.h
    out = body.local("tried")
    body.lines += dice.one(
        under("try:", [f"{out} = {layer}({h})"])
        + under("except RuntimeError:", [f"{out} = {layer}({h}.float())"]),
        under("try:", [f"{out} = {layer}({h}.unsqueeze(0)).squeeze(0)"])
        + under("except (RuntimeError, ValueError) as error:", ["raise SystemExit(str(error))"]),
        under("try:", [f"{out} = {layer}({h})"])
        + under("except RuntimeError:", ["raise"])
        + under("else:", [f"{out} *= 0.5"]),
        under("try:", [f"{out} = torch.sigmoid({layer}({h}))"]) + under("finally:", ["self.tries = 1"]),
    )
    body.go(out)
