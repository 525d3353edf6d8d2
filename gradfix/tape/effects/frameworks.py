"""Frameworks as data: what they call and backpropagate, which of their methods run backward or step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

NONE: frozenset[str] = frozenset()
CALL = "__call__"
"""The name under which a row lists calls of the object itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a framework calls a function: in which grad mode, and what becomes of its result."""

    grad: bool = True
    root: bool = False
    """Whether the result (or its "loss") is backpropagated."""
    owns_steps: bool = False
    """Whether clearing and stepping are the framework's."""
    given: tuple[str, ...] = ()
    """What it is called with: batch, module, prediction, the name of a row, or "" for anything else."""

    @property
    def loops(self) -> bool:
        """Whether it is the body of a loop over batches that clears and steps by itself."""
        return self.grad and not self.root and not self.owns_steps


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a class, or of what a function makes, by its name."""

    methods: Mapping[str, Entry] = field(default_factory=dict)
    """Methods of its subclasses that it calls."""
    functions: Mapping[str, Entry] = field(default_factory=dict)
    """Functions that it is given and calls, by keyword or position."""
    backward: frozenset[str] = NONE
    """Methods that run backward on their first argument."""
    step: frozenset[str] = NONE
    """Methods that step the optimizers it was made with, or is given."""
    zero_grad: frozenset[str] = NONE
    """Methods that clear what those optimizers hold; a method that steps as well clears last."""
    prepares: frozenset[str] = NONE
    """Methods that return what they are given, ready for use."""
    harmless: frozenset[str] = NONE
    """Methods that leave gradients alone."""
    unrecorded: frozenset[str] = NONE
    """Methods of its subclasses that it runs without recording."""
    switch: str = ""
    """The keyword that says whether a step is due."""
    manual: str = ""
    """The attribute that, when false, makes clearing and stepping the user's."""
    takes_over: str = ""
    """The method that a class defines which decides itself what is backpropagated of what it returns."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """Methods that return what another method of the same class has made."""
    makes: Mapping[str, str] = field(default_factory=dict)
    """Methods whose result another row describes."""
    packages: frozenset[str] = NONE
    """Where it comes from; what has only its name is not sure to backpropagate what it is handed."""
    module: bool = False
    """Whether it is a kind of nn.Module."""
    common: bool = False
    """Whether other packages have classes of this name that are no modules."""
    signature: tuple[str, ...] = ()
    """What a function takes by position, as far as "model" and "optimizer", which it wraps, are among it."""
    returns: tuple[str, ...] = ()
    """What such a function gives back: the wrapped "model" and "optimizer", and other things."""
    own: bool = False
    """Whether the user wrote it: then it also speaks of classes whose source is at hand."""

    def trusts(self, path: str) -> bool:
        """Whether a dotted name is in the packages of the row, and not merely called the same."""
        return not self.packages or path.partition(".")[0] in self.packages

    def is_module(self, path: str) -> bool:
        """Whether a base class of this dotted name makes modules; a file that isn't read may hand it on."""
        near = path.startswith(".") or "." not in path
        return self.module and (self.trusts(path) or near or not self.common)


GIVEN_BATCH = ("batch", "index")
LOSS = Entry(root=True, owns_steps=True, given=("prediction", "batch"))
NO_GRAD = Entry(grad=False)

LIGHTNING_MODULE = Row(
    methods={
        "training_step": Entry(root=True, owns_steps=True, given=GIVEN_BATCH),
        **dict.fromkeys(
            (
                "validation_step", "test_step", "predict_step", "on_validation_epoch_end",
                "on_test_epoch_end", "validation_epoch_end", "test_epoch_end",
            ),
            NO_GRAD,
        ),
    },
    backward=frozenset({"manual_backward"}),
    harmless=frozenset({
        "log", "log_dict", "print", "toggle_optimizer", "untoggle_optimizer", "lr_schedulers",
        "save_hyperparameters", "clip_gradients",
    }),
    manual="automatic_optimization",
    takes_over="backward",
    made_by={"optimizers": "configure_optimizers"},
    packages=frozenset({"lightning", "pytorch_lightning"}),
    module=True,
)  # fmt: skip
HF_TRAINER = Row(
    methods={
        "compute_loss": Entry(root=True, owns_steps=True, given=("module", "batch")),
        "training_step": Entry(owns_steps=True, given=("module", "batch")),
        "prediction_step": NO_GRAD,
    },
    packages=frozenset({"transformers", "trl", "sentence_transformers"}),
)
SKORCH_NET = Row(
    methods={"get_loss": LOSS},
    packages=frozenset({"skorch"}),
)
MM_PACKAGES = frozenset({"mmengine", "mmdet", "mmseg", "mmpretrain", "mmpose", "mmagic"})
MM_MODEL = Row(
    methods={"train_step": Entry(given=("batch", "OptimWrapper")), "val_step": NO_GRAD, "test_step": NO_GRAD},
    packages=MM_PACKAGES,
    module=True,
)
OPTIM_WRAPPER = Row(
    backward=frozenset({"update_params", "backward"}),
    step=frozenset({"update_params", "step"}),
    zero_grad=frozenset({"update_params", "zero_grad"}),
    harmless=frozenset({"optim_context", "scale_loss"}),
)
TIMM_SCALER = Row(backward=frozenset({CALL}), step=frozenset({CALL}), switch="need_update")
TIANSHOU_ALGORITHM = Row(makes={"_create_optimizer": "tianshou.Optimizer"}, packages=frozenset({"tianshou"}))
COMPOSER_MODEL = Row(
    methods={
        "loss": LOSS,
        "eval_forward": NO_GRAD,
    },
    packages=frozenset({"composer"}),
    module=True,
)

ROWS: Mapping[str, Row] = {
    "Module": Row(packages=frozenset({"torch"}), module=True, common=True),
    "ScriptModule": Row(packages=frozenset({"torch"}), module=True),
    "PreTrainedModel": Row(packages=frozenset({"transformers"}), module=True),
    "PyroModule": Row(packages=frozenset({"pyro"}), module=True),
    "MetaModule": Row(packages=frozenset({"torchmeta"}), module=True),
    "BaseModule": Row(packages=MM_PACKAGES | {"mmcv"}, module=True, common=True),
    "Metric": Row(unrecorded=frozenset({"update"}), packages=frozenset({"torchmetrics"})),
    "LightningModule": LIGHTNING_MODULE,
    **dict.fromkeys(("Trainer", "Seq2SeqTrainer", "SFTTrainer", "SentenceTransformerTrainer"), HF_TRAINER),
    **dict.fromkeys(("NeuralNet", "NeuralNetClassifier", "NeuralNetRegressor"), SKORCH_NET),
    "BaseModel": replace(MM_MODEL, common=True),
    **dict.fromkeys(("BaseDetector", "BaseSegmentor"), MM_MODEL),
    **dict.fromkeys(("OptimWrapper", "AmpOptimWrapper", "ApexOptimWrapper"), OPTIM_WRAPPER),
    **dict.fromkeys(("NativeScaler", "ApexScaler"), TIMM_SCALER),
    "NativeScalerWithGradNormCount": replace(TIMM_SCALER, switch="update_grad"),
    **dict.fromkeys(("Algorithm", "OnPolicyAlgorithm", "OffPolicyAlgorithm"), TIANSHOU_ALGORITHM),
    "tianshou.Optimizer": Row(
        backward=frozenset({"step"}), step=frozenset({"step"}), zero_grad=frozenset({"step"})
    ),
    "ComposerModel": COMPOSER_MODEL,
    "Accelerator": Row(
        backward=frozenset({"backward"}),
        prepares=frozenset({"prepare", "prepare_model", "unwrap_model", "gather", "reduce"}),
        harmless=frozenset({"accumulate", "autocast", "no_sync", "print", "log", "wait_for_everyone"}),
    ),
    "Fabric": Row(
        backward=frozenset({"backward"}),
        prepares=frozenset({"setup", "setup_module", "setup_dataloaders", "to_device"}),
        harmless=frozenset({"autocast", "no_backward_sync", "print", "log", "launch"}),
    ),
    "deepspeed.initialize": Row(
        backward=frozenset({"backward"}),
        step=frozenset({"step"}),
        zero_grad=frozenset({"step"}),
        signature=("args", "model", "optimizer"),
        returns=("model", "optimizer", "loader", "scheduler"),
    ),
    "Engine": Row(
        functions=dict.fromkeys(("0", "process_function"), Entry(given=("", "batch"))),
        packages=frozenset({"ignite"}),
    ),
    "create_supervised_trainer": Row(
        functions=dict.fromkeys(("2", "loss_fn"), LOSS),
        packages=frozenset({"ignite"}),
    ),
    "Learner": Row(
        functions=dict.fromkeys(("2", "loss_func"), LOSS),
        packages=frozenset({"fastai"}),
    ),
}  # fmt: skip
"""The frameworks that are known, by the name of the class or function (dotted where that is needed)."""


def signs(name: str, row: Row) -> Iterator[tuple[bytes, ...]]:
    """What a file mentions that a row may speak of: the parts of its name, and one of its packages."""
    parts = tuple(part.encode() for part in name.split("."))
    for package in row.packages or ("",):
        yield (package.encode(), *parts) if package else parts


def merged(rows: Mapping[str, Row], more: Iterable[tuple[str, Row]]) -> Mapping[str, Row]:
    """A table with more rows: what a row adds to one of the same name comes on top of it."""
    table = dict(rows)
    for name, row in more:
        table[name] = _joined(table[name], row) if name in table else row
    return table


def _joined(old: Row, new: Row) -> Row:
    joined = {}
    for each in fields(Row):
        before, after = getattr(old, each.name), getattr(new, each.name)
        if isinstance(before, frozenset):
            joined[each.name] = before | after
        elif isinstance(before, Mapping):
            joined[each.name] = {**before, **after}
        else:
            joined[each.name] = after or before
    return Row(**{**joined, "packages": NONE})
