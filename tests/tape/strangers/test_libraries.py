"""Layers of other libraries: built as their documentation says, and likely for that; none is run."""

from __future__ import annotations

import pytest
from short import analysis, kinds, listed

NET = """
from mmcv.cnn import ConvModule
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.post = ConvModule(3, 4, 1, BUILT), nn.Conv2d(4, 4, 1)
    def forward(self, x):
        x = self.pre(x)
        x += 1
        return self.post(x)
Net()(torch.ones(1, 3, 2, 2)).sum().backward()
"""


def net(built: str) -> str:
    return NET.replace("BUILT", built)


@pytest.mark.parametrize(
    "built",
    [
        pytest.param("inplace=False", id="the usual activation"),
        pytest.param("act_cfg=dict(type='ReLU')", id="in place too it keeps what it gives"),
        pytest.param("norm_cfg=dict(type='BN'), act_cfg={'type': 'Sigmoid'}", id="behind a norm"),
        pytest.param("padding=1, bias=False, conv_cfg=dict(type='DCN')", id="behind another convolution"),
    ],
)
def test_what_comes_last_keeps_its_result(built: str) -> None:
    (defect,) = [one for one in analysis(net(built)).defects if one.kind == "inplace_overwrites_saved"]
    assert defect.certainty == "likely"


@pytest.mark.parametrize(
    "built",
    [
        pytest.param("act_cfg=None", id="no activation"),
        pytest.param("norm_cfg=dict(type='BN'), act_cfg=None", id="a norm comes last"),
        pytest.param(
            "act_cfg=dict(type='LeakyReLU', inplace=False)", id="an activation that keeps what comes in"
        ),
        pytest.param("act_cfg=dict(type='GELU')", id="another that does"),
        pytest.param("act_cfg=dict(type='Mine')", id="an activation that isn't known"),
        pytest.param("act_cfg=input()", id="a configuration that isn't known"),
        pytest.param("**eval(input())", id="arguments that aren't known"),
        pytest.param("order=('act', 'conv', 'norm')", id="another order"),
    ],
)
def test_nothing_is_said_where_nothing_is_kept_or_known(built: str) -> None:
    assert listed(net(built)) == set()


def test_it_may_be_told_to_leave_the_activation_out() -> None:
    assert listed(net("inplace=False").replace("self.pre(x)", "self.pre(x, activate=False)")) == set()


def test_a_class_of_that_name_in_this_file_is_what_it_says() -> None:
    own = "class ConvModule(nn.Module):\n    def __init__(self, *a, **k):\n        super().__init__()\n"
    own += "        self.c = nn.Conv2d(3, 4, 1)\n    def forward(self, x):\n        return self.c(x)\n"
    assert kinds(net("inplace=False").replace("from mmcv.cnn import ConvModule\n", own)) == set()


STAGES = """
from PACKAGE import BaseModule, ModuleList
class Stage(BaseModule):
    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv2d(2, 2, 1), nn.ReLU()
    def forward(self, x):
        return self.act(self.conv(x))
class Neck(BaseModule):
    def __init__(self):
        super().__init__()
        self.stages = ModuleList(init_cfg=None)
        for _ in range(2):
            self.stages.append(Stage())
    def forward(self, x):
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i == 0:
                total = x
            else:
                total += x
        return total
Neck()(torch.ones(1, 2, 3, 3)).sum().backward()
"""


@pytest.mark.parametrize("package", ["mmcv.runner", "mmengine.model", "mmcv.runner.base_module"])
def test_a_container_of_another_library_calls_what_it_holds(package: str) -> None:
    assert listed(STAGES.replace("PACKAGE", package)) == {"inplace_overwrites_saved"}


MMCV = STAGES.replace("PACKAGE", "mmcv.runner")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(MMCV.replace("total += x", "total = total + x"), id="out of place"),
        pytest.param(STAGES.replace("PACKAGE", "mine"), id="a container that isn't known"),
        pytest.param(MMCV.replace("total = x\n", "total = x.clone()\n"), id="a copy is written"),
        pytest.param(MMCV.replace("total += x", "total = x"), id="nothing is written"),
    ],
)
def test_nothing_is_said_of(body: str) -> None:
    assert listed(body) == set()
