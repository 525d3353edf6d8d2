"""The vocabulary of the programs: templates for operations, writes, views, cuts and factories, as data."""

from __future__ import annotations

MATRIX = (3, 4)
VECTOR = (4,)
SCALAR = ()

UNARY = (
    "{x}.exp()", "torch.exp({x})", "{x}.sigmoid()", "torch.sigmoid({x})", "{x}.tanh()", "torch.tanh({x})",
    "{x}.relu()", "F.relu({x})", "torch.relu({x})", "{x}.abs().sqrt()", "{x}.abs().add(1).log()",
    "torch.log({x}.abs() + 1)", "{x}.abs()", "{x}.pow(2)", "{x} ** 2", "{x} ** 3", "torch.pow({x}, 2)",
    "torch.square({x})", "{x} * 2", "{x} * 2.0", "2 * {x}", "{x} / 2", "{x} + 1", "1 - {x}", "{x} - 0.5",
    "-{x}", "1.0 / ({x} + 9)", "F.softplus({x})", "F.gelu({x})", "F.silu({x})", "F.leaky_relu({x}, 0.1)",
    "F.elu({x})", "{x}.clamp(min=0)", "torch.clamp({x}, -1, 1)", "{x}.clone()", "{x}.sin()",
    "torch.cos({x})", "{x}.expm1()", "{x}.erf()", "F.hardtanh({x})", "F.logsigmoid({x})",
    "{x}.masked_fill({x} > 0, 0.0)", "torch.where({x} > 0, {x}, -{x})", "F.dropout({x}, 0.5)",
    "F.dropout({x}, p=0.0)", "F.dropout({x}, 0.5, training=False)", "torch.nan_to_num({x})", "{x}.mul(3)",
    "{x}.add(1)", "{x}.sub(1)", "{x}.div(2)", "{x}.neg()", "{x}.square()", "{x}.reciprocal()",
    "({x} + 9).rsqrt()", "F.mish({x})", "F.relu6({x})", "torch.atan({x})", "{x}.log1p()",
    "{x}.contiguous()", "{x}.to(torch.float32)", "{x}.float()", "{x}.view_as({x})", "{x}.type_as({x})",
)  # fmt: skip
"""Keep shape; the gradient passes."""

UNARY_ROWS = (
    "F.softmax({x}, dim=-1)", "{x}.softmax(dim=-1)", "torch.log_softmax({x}, -1)",
    "F.layer_norm({x}, {x}.shape[-1:])", "F.normalize({x}, dim=-1)", "{x}.cumsum(-1)",
    "torch.cumprod({x}, -1)", "{x}.flip(-1)", "{x} / {x}.norm()", "{x} / {x}.pow(2).sum().sqrt()",
    "{x} - {x}.mean()", "{x} - {x}.mean(-1, keepdim=True)", "torch.sort({x}, dim=-1)[0]",
    "torch.roll({x}, 1, -1)", "{x} / {x}.std()", "{x} - {x}.logsumexp(-1, keepdim=True)",
    "{x} * {x}.max()", "{x} - torch.amax({x})", "F.glu(torch.cat([{x}, {x}], -1))", "{x} * {x}.prod()",
)  # fmt: skip
"""Keep shape, for tensors of one dimension or more."""

DEAD = (
    "{x}.round()", "{x}.sign()", "torch.zeros_like({x})", "torch.rand_like({x})", "({x} > 0).float()",
    "torch.floor({x})",
)  # fmt: skip
"""Keep shape; no gradient or only zeros come through."""

BINARY = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} * {b}", "{a} / ({b}.abs() + 1)", "torch.add({a}, {b})",
    "torch.mul({a}, {b})", "{a}.mul({b})", "{a}.add({b}, alpha=2)", "torch.maximum({a}, {b})",
    "torch.min({a}, {b})", "torch.where({a} > {b}, {a}, {b})", "torch.addcmul({a}, {a}, {b})",
    "torch.lerp({a}, {b}, 0.5)", "{a}.sub({b})", "{a} ** {b}.abs()", "torch.stack([{a}, {b}]).sum(0)",
    "torch.stack([{a}, {b}]).mean(dim=0)", "{a}.atan2({b})",
)  # fmt: skip

REDUCE = (
    "{x}.sum()", "{x}.mean()", "torch.sum({x})", "torch.mean({x})", "{x}.pow(2).mean()",
    "({x} ** 2).sum()", "{x}.norm()", "{x}.abs().max()", "{x}.logsumexp(0).sum()", "{x}.std()",
)  # fmt: skip
LOSSES = (
    "F.mse_loss({a}, {b})", "F.l1_loss({a}, {b})", "F.smooth_l1_loss({a}, {b})",
    "(({a} - {b}) ** 2).mean()", "({a} - {b}).abs().sum()", "({a} * {b}).sum()", "nn.MSELoss()({a}, {b})",
    "F.mse_loss({a}, {b}, reduction='sum')", "F.binary_cross_entropy_with_logits({a}, {b}.sigmoid())",
    "F.cross_entropy({a}, {b}.softmax(-1))",
    "F.kl_div(F.log_softmax({a}, -1), F.softmax({b}, -1), reduction='batchmean')",
)  # fmt: skip

VIEWS: dict[tuple[int, ...], tuple[tuple[str, tuple[int, ...]], ...]] = {
    MATRIX: (
        ("{x}[0]", (4,)), ("{x}[-1]", (4,)), ("{x}[:, 0]", (3,)), ("{x}[1:]", (2, 4)),
        ("{x}[:, 1:3]", (3, 2)), ("{x}.view(-1)", (12,)), ("{x}.view(4, 3)", (4, 3)),
        ("{x}.reshape(12)", (12,)), ("{x}.flatten()", (12,)), ("{x}.t()", (4, 3)),
        ("{x}.transpose(0, 1)", (4, 3)), ("{x}.permute(1, 0)", (4, 3)), ("{x}.T", (4, 3)),
        ("{x}.unsqueeze(0)", (1, 3, 4)), ("{x}.narrow(1, 0, 2)", (3, 2)), ("{x}.select(0, 1)", (4,)),
        ("{x}.t().contiguous()", (4, 3)), ("{x}.t().reshape(3, 4)", (3, 4)), ("{x}.view(3, 4)", (3, 4)),
        ("{x}.unsqueeze(1).squeeze(1)", (3, 4)), ("{x}.contiguous()", (3, 4)),
        ("{x}.t().flatten()", (12,)), ("{x}.diagonal()", (3,)), ("{x}[...]", (3, 4)),
        ("{x}[[0, 2]]", (2, 4)), ("torch.flatten({x})", (12,)), ("{x}.expand(3, 4)", (3, 4)),
        ("{x}.to(torch.float32)", (3, 4)), ("torch.transpose({x}, 0, 1)", (4, 3)),
        ("{x}.reshape(-1, 2)", (6, 2)), ("{x}[0:2, 1]", (2,)), ("{x}.unfold(1, 2, 2)", (3, 2, 2)),
    ),
    VECTOR: (
        ("{x}[0]", ()), ("{x}[1:]", (3,)), ("{x}[:2]", (2,)), ("{x}.view(2, 2)", (2, 2)),
        ("{x}[None]", (1, 4)), ("{x}.unsqueeze(-1)", (4, 1)), ("{x}.expand(3, 4)", (3, 4)),
        ("{x}.reshape(2, 2)", (2, 2)), ("{x}.view(4)", (4,)), ("{x}[::2]", (2,)),
    ),
}  # fmt: skip

SPLITS = (
    ("{a}, {b} = {x}.chunk(2, dim=1)", ((3, 2), (3, 2))),
    ("{a}, {b} = torch.chunk({x}, 2, 1)", ((3, 2), (3, 2))),
    ("{a}, {b} = {x}.split(2, 1)", ((3, 2), (3, 2))),
    ("{a}, {b} = torch.split({x}, [1, 3], dim=1)", ((3, 1), (3, 3))),
    ("{a}, {b} = {x}[:2].unbind(0)", ((4,), (4,))), ("{a}, {b}, _ = {x}", ((4,), (4,))),
    ("{a}, {b}, _ = {x}.unbind()", ((4,), (4,))), ("{a}, {b} = {x}[:, :2], {x}[:, 2:]", ((3, 2), (3, 2))),
)  # fmt: skip
"""Ways to take a matrix apart in two names."""

WRITES = (
    "{v} += 1", "{v} -= {e}", "{v} += {e}", "{v} *= 2", "{v} *= {e}", "{v} /= 2", "{v} += {v}",
    "{v}.add_(1)", "{v}.add_({e})", "{v}.mul_({e})", "{v}.mul_(0.5)", "{v}.sub_({e}, alpha=0.1)",
    "{v}.relu_()", "{v}.exp_()", "{v}.sigmoid_()", "{v}.tanh_()", "{v}.zero_()", "{v}.clamp_(-1, 1)",
    "{v}.clamp_(min=0)", "{v}.neg_()", "{v}.fill_(1.0)", "{v}.copy_({e})",
    "{v}.masked_fill_({v} > 0, 0.0)", "{v}.div_(2)", "{v}.abs_()", "{v}.pow_(2)", "{v} **= 2",
    "{v}.floor_()", "{v}.addcmul_({e}, {e})", "{v}.lerp_({e}, 0.5)", "F.relu({v}, inplace=True)",
    "F.relu_({v})", "torch.relu_({v})", "F.leaky_relu({v}, 0.1, inplace=True)", "F.elu({v}, inplace=True)",
    "F.silu({v}, inplace=True)", "F.hardtanh({v}, inplace=True)", "F.dropout({v}, 0.5, True, True)",
    "F.dropout({v}, p=0.5, inplace=True)", "F.relu6({v}, True)", "nn.ReLU(inplace=True)({v})",
    "nn.LeakyReLU(0.1, True)({v})", "nn.SiLU(inplace=True)({v})", "{v}.uniform_()", "{v}.normal_()",
    "nn.init.zeros_({v})", "nn.init.normal_({v}, std=0.1)",
)  # fmt: skip

INDEX_WRITES = (
    "{v}[0] = 1.0", "{v}[0] = {v}[1]", "{v}[:1] = 0.0", "{v}[..., 0] = 2.0", "{v}[{v} > 0] = 0.0",
    "{v}[0] += 1", "{v}[-1] *= 2", "{v}[:] = {e}", "{v}[0].add_(1)", "{v}[:2].mul_(2)",
    "{v}[1:] -= {v}[0]", "{v}.view(-1)[0] = 1.0", "{v}.view(-1).add_(1)", "{v}.flatten().mul_(2)",
    "{v}.index_fill_(0, torch.tensor([0]), 0.0)", "{v}[...] = 0.0", "{v}.unsqueeze(0).add_(1)",
    "{v}.reshape(-1)[0] = 0.0", "{v}.index_add_(0, torch.tensor([0]), {v}[:1])",
)  # fmt: skip

HIDDEN_WRITES = (
    "{v}.data += 1", "{v}.data.mul_(2)", "{v}.data[0] = 0.0", "{v}.data.zero_()",
    "{v}.data.clamp_(-0.1, 0.1)", "{v}.data = {v}.data * 2", "{v}.data *= 0.5",
)  # fmt: skip
"""Through `.data`: torch does not notice."""

SEEN_WRITES = (
    "{v}.detach().mul_(2)",
    "{v}.detach()[0] = 0.0",
    "{v}.detach().zero_()",
    "{v}.detach().add_({e})",
)
"""Through `.detach()`: torch notices."""

CUTS = (
    "{x}.detach()", "{x}.detach()", "{x}.data", "{x}.detach().clone()", "{x}.clone().detach()",
    "Variable({x})", "torch.tensor({x}.tolist())", "torch.from_numpy({x}.detach().numpy())",
    "{x}.clone().data", "torch.tensor({x})", "{x}.new_tensor({x})", "torch.as_tensor({x})",
    "{x}.detach().requires_grad_()",
)  # fmt: skip

SCALAR_CUTS = (
    "torch.tensor({x}.item())", "torch.tensor(float({x}))", "torch.tensor([{x}]).sum()",
    "torch.tensor({x})", "Variable({x}.data, requires_grad=True)", "torch.tensor({x}, requires_grad=True)",
    "torch.tensor({x}.item(), requires_grad=True)", "torch.Tensor([{x}]).mean()",
    "torch.tensor(math.exp({x}))", "Variable(torch.tensor({x}.item()), requires_grad=True)",
    "nn.Parameter({x}.detach())",
)  # fmt: skip

NUMBERS = (
    "{x}.item()",
    "float({x})",
    "{x}.detach().item()",
    "{x}.tolist()",
    "math.exp({x}.item())",
    "{x}.sum().item()",
)

LEAVES = (
    "torch.randn({n}, requires_grad=True)", "torch.ones({n}, requires_grad=True)",
    "torch.rand({n}).requires_grad_()", "torch.zeros({n}, requires_grad=True)",
    "nn.Parameter(torch.randn({n}))", "torch.full([{n}], 0.5, requires_grad=True)",
    "Variable(torch.randn({n}), requires_grad=True)",
)  # fmt: skip
CONSTANTS = (
    "torch.randn({n})", "torch.ones({n})", "torch.rand({n})", "torch.zeros({n})",
    "torch.empty({n}).normal_()", "torch.full([{n}], 0.5)", "Variable(torch.randn({n}))",
)  # fmt: skip

NO_GRAD = (
    ("with torch.no_grad():", False), ("with torch.no_grad():", False),
    ("with torch.set_grad_enabled(False):", False), ("with torch.inference_mode():", False),
    ("with torch.enable_grad():", True), ("with torch.set_grad_enabled(True):", True),
    ("with torch.autograd.no_grad():", False),
)  # fmt: skip

FLAGS = (
    "len(sys.argv) > 5",
    "bool(os.environ.get('GRADFIX_ORACLE'))",
    "'--fast' in sys.argv",
    *(f"'GRADFIX_ORACLE{number}' in os.environ" for number in range(3, 10)),
)
"""Facts that no reader of the file can know; each is run both ways where it can be."""
