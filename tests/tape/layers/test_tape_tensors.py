"""What the tape says of a tensor is what torch does: its sizes, its type, its memory and their order."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from gradfix.source import Source, parse
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.values import Seq, Value
from gradfix.tape.effects import strides
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.handlers import HANDLERS
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.program import Program
from gradfix.tape.machine.reports import Findings

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
BASES = {
    "of a result": "x = torch.randn(3, 4, requires_grad=True) * 2",
    "of a leaf": "x = torch.randn(3, 4, requires_grad=True)",
    "of data": "x = torch.randn(3, 4)",
    "of a permuted result": "x = (torch.randn(4, 3, requires_grad=True) * 2).t()",
    "of some columns": "x = (torch.randn(3, 8, requires_grad=True) * 2)[:, :4]",
    "of an expanded row": "x = (torch.randn(1, 4, requires_grad=True) * 2).expand(3, 4)",
    "of one of several views": "x = (torch.randn(3, 8, requires_grad=True) * 2).chunk(2, 1)[0]",
}
DTYPES = {
    torch.float32: "float", torch.float64: "double", torch.float16: "half", torch.int64: "int",
    torch.int32: "int", torch.uint8: "int", torch.bool: "bool",
}  # fmt: skip
OPERATIONS = (
    "x.narrow(0,0,1)", "x.movedim(0,1)", "x.unfold(0,2,1)", "x.repeat(2,2)", "x.tile(2,2)",
    "torch.tile(x,(2,2))", "x.expand(2,-1,-1)", "x.expand(2,3,4)", "x.broadcast_to(2,3,4)",
    "x.repeat_interleave(2)", "x.repeat_interleave(2,0)", "x.diag()", "torch.diag(x)", "x.tril()",
    "x.triu()", "torch.outer(x.view(-1),x.view(-1))", "torch.kron(x,x)", "torch.einsum('ij,ij->',x,x)",
    "torch.einsum('ij,ij',x,x)", "torch.einsum('ij->j',x)", "torch.einsum('ij,kj->ik',x,x)",
    "torch.einsum('...j,j->...',x,x[0])", "torch.einsum('bij->bi',x[None])", "torch.tensordot(x,x,2)",
    "torch.tensordot(x,x,dims=([1],[1]))", "torch.trace(x@x.t())", "x.topk(2)", "x.topk(2)[0]", "x.sort()",
    "x.max(1)", "x.max(1)[0]", "x.max(1).values", "x.min(dim=0).values", "x.max()", "x.median()",
    "x.median(0)", "x.mode(0)", "x.kthvalue(1)", "x.argmax()", "x.argmax(1)", "x.argmax(dim=-1)",
    "x.cummax(0)", "x.index_select(0,torch.tensor([0,1]))",
    "x.gather(1,torch.zeros(3,2,dtype=torch.long))", "x.scatter(1,torch.zeros(3,2,dtype=torch.long),1.0)",
    "x.masked_select(x>0)", "x[x>0]", "x[torch.tensor([0,1])]", "x[:,torch.tensor([0,1])]", "x[:,None]",
    "x[None,:,0]", "x[...,0]", "x[...,None]", "x[...,1:]", "x[0,...]", "x[0,0]", "x[0][0]",
    "x[[0,1],[1,2]]", "x.take(torch.tensor([0,5]))", "x.nonzero()", "torch.where(x>0)", "x.unique()",
    "x.split(1)", "x.split(2)", "x.split([1,2])", "x.split([1,3],dim=1)", "torch.split(x,2,dim=1)",
    "x.chunk(3)", "x.chunk(2)", "x.chunk(2,1)", "x.unbind()", "x.unbind(1)", "torch.unbind(x,dim=1)",
    "x.tensor_split(2,1)", "x.hsplit(2)", "x.vsplit(3)", "torch.meshgrid(x[0],x[1])",
    "torch.stack([x,x],1)", "torch.stack((x,x),dim=-1)", "torch.stack(list(x))",
    "torch.stack([r for r in x])", "torch.cat([x,x])", "torch.cat([x,x],1)", "torch.cat((x,x),dim=-1)",
    "torch.cat(list(x))", "torch.cat([r for r in x])", "torch.hstack([x,x])", "torch.vstack([x,x])",
    "torch.dstack([x,x])", "torch.concat([x,x],dim=0)", "F.glu(x,1)", "F.glu(x,dim=-1)", "F.pad(x,(1,1))",
    "F.pad(x,(1,1),value=1.0)", "F.one_hot(x.argmax(1),4)", "F.normalize(x)", "F.softmax(x,1)",
    "F.cosine_similarity(x,x)", "F.cosine_similarity(x,x,dim=0)", "F.pairwise_distance(x,x)",
    "torch.cdist(x,x)", "F.mse_loss(x,x,reduction='none')", "F.mse_loss(x,x)",
    "F.cross_entropy(x,x.argmax(1),reduction='none')", "F.cross_entropy(x,x.argmax(1))",
    "F.nll_loss(x,x.argmax(1),reduction='none')", "F.kl_div(x,x,reduction='none')",
    "F.kl_div(x,x,reduction='sum')", "F.huber_loss(x,x,reduction='none')",
    "F.binary_cross_entropy_with_logits(x,x,reduction='none')",
    "F.triplet_margin_loss(x,x,x,reduction='none')",
    "F.cosine_embedding_loss(x,x,torch.ones(3),reduction='none')",
    "F.margin_ranking_loss(x,x,torch.ones(3,4),reduction='none')", "F.linear(x,torch.randn(5,4))",
    "F.linear(x,torch.randn(5,4),torch.randn(5))", "F.linear(x[0],torch.randn(5,4))", "nn.Linear(4,5)(x)",
    "nn.Linear(4,1)(x)", "nn.Linear(4,1)(x).squeeze(-1)", "nn.Linear(4,1)(x).squeeze()",
    "nn.Linear(4,1)(x).mean(0)", "nn.Bilinear(4,4,1)(x,x)", "nn.Flatten()(x)", "nn.Flatten(0)(x)",
    "nn.Sequential(nn.Linear(4,1),nn.Sigmoid())(x)", "nn.ReLU()(x)", "nn.Softmax(dim=1)(x)",
    "nn.LayerNorm(4)(x)", "nn.BatchNorm1d(4)(x)", "nn.Dropout(0.5)(x)", "nn.Identity()(x)",
    "nn.Conv2d(1,2,1)(x[None,None])", "nn.Conv2d(1,2,3,padding=1)(x[None,None])",
    "nn.Conv1d(3,2,2)(x[None])", "nn.MaxPool2d(2)(x[None,None])", "F.max_pool2d(x[None,None],2)",
    "F.avg_pool2d(x[None,None],2)", "F.adaptive_avg_pool2d(x[None,None],1)",
    "F.adaptive_avg_pool2d(x[None,None],(1,1)).flatten()", "nn.AdaptiveAvgPool2d(1)(x[None,None])",
    "F.interpolate(x[None,None],scale_factor=2)", "F.conv2d(x[None,None],torch.randn(2,1,1,1))",
    "nn.Embedding(10,1)(x.argmax(1))", "F.embedding(x.argmax(1),torch.randn(4,3))",
    "nn.LSTM(4,5)(x[None])[0]", "nn.GRU(4,5,batch_first=True)(x[None])[0]",
    "nn.MSELoss(reduction='none')(x,x)", "nn.MSELoss()(x,x)",
    "nn.CrossEntropyLoss(reduction='none')(x,x.argmax(1))", "nn.L1Loss(reduction='sum')(x,x)",
    "nn.CosineSimilarity()(x,x)", "nn.PairwiseDistance()(x,x)", "x.sum(1)", "x.sum(-1)", "x.sum((0,1))",
    "x.sum(dim=[0,1])", "x.sum([0,1],keepdim=True)", "x.sum(1,keepdim=True)", "x.sum(dim=1,keepdim=True)",
    "x.sum(1,True)", "x.mean(1,True)", "x.mean((0,1),True)", "x.mean(dim=None)", "x.norm(dim=1)",
    "x.norm(2,1)", "x.norm(2)", "x.norm(p=2,dim=1)", "x.norm(2,dim=-1,keepdim=True)", "torch.norm(x)",
    "torch.norm(x,dim=1)", "torch.norm(x,2,1)", "torch.linalg.norm(x)", "torch.linalg.norm(x,dim=1)",
    "torch.linalg.vector_norm(x)", "torch.linalg.vector_norm(x,dim=1)", "x.std(0)",
    "x.std(dim=1,keepdim=True)", "x.std(0,unbiased=False)", "x.var(1)", "torch.std(x,1)",
    "torch.std_mean(x)", "torch.var_mean(x,dim=1)", "x.prod(1)", "x.prod()", "x.logsumexp(1)",
    "torch.logsumexp(x,dim=-1,keepdim=True)", "torch.logsumexp(x,(0,1))", "x.amax(1)", "x.amax((0,1))",
    "x.amax()", "x.all()", "x.any(1)", "x.nansum()", "x.count_nonzero()", "x.quantile(0.5)",
    "x.quantile(0.5,dim=1)", "x.dist(x)", "torch.dot(x[0],x[1])", "x[0]@x[1]", "x@x[0]", "x@x.t()",
    "x@x.T", "x.mm(x.t())", "x.matmul(x.t())", "x.mv(x[0])", "torch.bmm(x[None],x.t()[None])",
    "x[None]@x.t()", "torch.addmm(torch.zeros(3,3),x,x.t())",
    "torch.baddbmm(torch.zeros(1,3,3),x[None],x.t()[None])", "torch.addmv(torch.zeros(3),x,x[0])",
    "torch.chain_matmul(x,x.t())", "torch.linalg.multi_dot([x,x.t(),x])", "torch.det(x@x.t())",
    "torch.linalg.det(x@x.t())", "torch.inverse(x@x.t())", "torch.linalg.inv(x@x.t())",
    "torch.logdet(x@x.t())", "torch.linalg.svd(x)", "torch.linalg.eigvalsh(x@x.t())",
    "torch.cholesky(x@x.t()+torch.eye(3))", "torch.linalg.cholesky(x[:,:3]@x[:,:3].t()+torch.eye(3))",
    "torch.linalg.solve(x@x.t(),x)", "torch.maximum(x,x)", "torch.max(x,x)", "x.max(torch.zeros(3,4))",
    "x.clamp(0,1)", "x.double()", "x.half()", "x.long()", "x.int()", "x.bool()", "x.to(torch.float64)",
    "x.to(torch.float16)", "x.to(dtype=torch.float64)", "x.type(torch.float64)",
    "x.type(torch.FloatTensor)", "x.to('cpu')", "x.cpu()", "x.to(x.device)", "x.to(x)",
    "x.to(torch.float32,copy=True)", "x.float()", "(x>0)", "(x>0).float()", "(x>0)&(x<1)", "~(x>0)",
    "x.eq(x)", "x.isnan()", "x.isfinite()", "torch.isnan(x)", "x.floor()", "x.round()", "x//2", "x%2",
    "x.fmod(2)", "x.remainder(2)", "x**x", "2**x", "x.pow(x)", "torch.pow(2,x)", "x+x[0]", "x[0]+x",
    "x+torch.ones(1)", "x[0][0]+x", "x*torch.tensor(2.0)", "x+torch.ones(3,4,dtype=torch.float64)",
    "x+torch.ones(3,4,dtype=torch.long)", "x*(x>0)", "x.new_zeros(3)", "x.new_zeros(x.shape)",
    "x.new_zeros(x.size())", "x.new_ones(2,3)", "x.new_full((2,),1.0)", "x.new_empty(3).zero_()",
    "torch.zeros(x.shape)", "torch.zeros(x.size())", "torch.zeros(x.size(0))", "torch.zeros(x.shape[0])",
    "torch.zeros(*x.shape)", "torch.zeros(x.shape[0],2)", "torch.zeros(len(x))", "torch.randn_like(x)",
    "torch.full_like(x,1.0)", "torch.full((2,3),1.0)", "torch.full((2,3),1)", "torch.full((),1.0)",
    "torch.arange(3)", "torch.arange(3.)", "torch.arange(0,1,0.5)", "torch.linspace(0,1,5)",
    "torch.eye(3)", "torch.eye(1)", "torch.tensor(1.0)", "torch.tensor([1.0])", "torch.tensor([1])",
    "torch.tensor([[1.,2.]])", "torch.tensor([True])", "torch.Tensor([1,2])", "torch.Tensor(3,4)",
    "torch.FloatTensor([1.0])", "torch.FloatTensor(2,3)", "torch.LongTensor([1])",
    "torch.randint(0,2,(3,))", "torch.randint(2,(3,))", "torch.randint(0,2,(3,),dtype=torch.float32)",
    "torch.randperm(3)", "torch.normal(0.0,1.0,(3,))", "torch.normal(x,1.0)",
    "torch.bernoulli(x.sigmoid())", "torch.multinomial(x.softmax(1),1)", "torch.rand(())", "torch.rand(1)",
    "torch.rand([])", "torch.ones([2,3])", "torch.ones((2,3))", "torch.ones(size=(2,3))",
    "torch.empty(2,3)", "torch.scalar_tensor(1.0)", "torch.from_numpy(x.detach().numpy())",
    "torch.as_tensor(x)", "torch.as_tensor([1.0,2.0])", "x.view(3,-1)", "x.view(-1,1)", "x.view(1,-1)",
    "x.view(x.shape)", "x.view(x.size())", "x.view(x.size(0),-1)", "x.view(x.shape[0],-1)",
    "x.view(-1,x.size(1))", "x.view((2,6))", "x.reshape((2,6))", "x.reshape([2,-1])", "x.reshape(-1)",
    "torch.reshape(x,(-1,))", "torch.reshape(x,(2,6))", "x.view_as(torch.zeros(4,3))",
    "x.reshape_as(torch.zeros(4,3))", "x.expand_as(torch.zeros(2,3,4))", "x.flatten(1)", "x.flatten(0,1)",
    "x[None].flatten(1)", "x[None].flatten(0,1)", "x[None].flatten(start_dim=1)", "torch.flatten(x,1)",
    "x.ravel()", "torch.ravel(x)", "x.squeeze()", "x[None].squeeze()", "x[None].squeeze(0)",
    "x[None].squeeze(1)", "torch.squeeze(x[None],0)", "x.unsqueeze(1)", "x.unsqueeze(-1)",
    "x.unsqueeze(dim=0)", "torch.unsqueeze(x,0)", "x.unflatten(1,(2,2))", "x.permute(1,0)",
    "x.permute((1,0))", "x[None].permute(0,2,1)", "torch.permute(x,(1,0))", "x.swapaxes(0,1)",
    "x.transpose(-1,-2)", "x.mT", "x.T", "x.H", "x.adjoint()", "x.t().reshape(-1)", "x.t().flatten()",
    "x.t().contiguous()", "x.t().contiguous().view(-1)", "x.permute(1,0).contiguous().view(12)",
    "x.rot90()", "x.flip(0)", "x.flip([0,1])", "x.fliplr()", "x.roll(1)", "x.as_strided((2,2),(1,1))",
    "x.detach()", "x.data", "x.clone()", "x.conj()", "x.resolve_conj()", "x.positive()", "+x", "-x",
    "abs(x)", "x.contiguous()", "x.requires_grad_()", "x.cumsum(0)", "x.cumprod(1)", "x.diff()",
    "x.diff(dim=0)", "x.diagonal()", "x.diagonal(0)", "x.diagonal(1)", "torch.diagonal(x)",
    "torch.diag_embed(x)", "x.lerp(x,0.5)", "x.addcdiv(x,x)", "x.histc()", "x.mean().sqrt()", "x.sum()/3",
    "x.sum().view(1)", "x.sum().unsqueeze(0)", "x.sum().expand(3)", "x.sum().repeat(3)",
    "x.sum().squeeze()", "x.sum()[None]", "x.sum().reshape(1,1)", "x.new_tensor([1.0])", "sum(x)",
    "sum([x.sum(),x.sum()])", "sum(x.sum() for _ in range(2))", "max(x.sum(),x.mean())",
    "torch.sum(x,dim=1)", "torch.mean(x,1)", "torch.max(x,1)", "torch.max(x,dim=1)[0]",
    "torch.min(x,1).values", "torch.argmax(x,dim=1)", "torch.topk(x,2,dim=1)",
    "torch.sort(x,dim=1,descending=True)", "torch.gather(x,1,torch.zeros(3,1,dtype=torch.long))",
    "torch.gather(x,1,torch.zeros(3,1,dtype=torch.long)).squeeze(1)",
    "torch.index_select(x,1,torch.tensor([0]))", "torch.masked_select(x,x>0)", "torch.nonzero(x)",
    "torch.take(x,torch.tensor([0]))", "x.log_softmax(1)[range(3),x.argmax(1)]",
    "x[torch.arange(3),x.argmax(1)]", "x[range(3)]", "x[torch.arange(3)]", "x[x.argmax(1)]", "x[:,0:1]",
    "x[:2,:2]", "x[::2]", "x[-1:]", "x[1:-1]", "x[:,-1]", "x[True]", "x[None,None]", "x[slice(0,1)]",
    "x[(0,1)]", "x[:]", "x[:,:]", "x[3:]", "x[:,4:]", "x[0:0].sum()", "torch.broadcast_tensors(x,x[0])",
    "torch.broadcast_to(x,(2,3,4))", "torch.atleast_2d(x.sum())", "torch.block_diag(x,x)",
    "torch.cartesian_prod(x[0],x[1])", "torch.combinations(x[0])",
    "torch.bucketize(x,torch.tensor([0.0]))", "torch.searchsorted(torch.tensor([0.0,1.0]),x)",
    "torch.clone(x)", "torch.abs(x)", "torch.square(x)", "torch.addcdiv(x,x,x)",
    "torch.cross(x[:,:3],x[:,:3])", "torch.renorm(x,2,0,1.0)", "torch.cov(x)", "torch.corrcoef(x)",
    "F.gelu(x)", "F.silu(x)", "F.dropout(x,0.5)", "F.dropout(x,0.0)", "F.dropout(x,training=False)",
    "F.alpha_dropout(x,0.5)", "F.feature_alpha_dropout(x[None],0.5)", "F.dropout2d(x[None],0.5)",
    "F.rrelu(x)", "F.threshold(x,0,0)", "F.prelu(x,torch.tensor([0.25]))",
    "F.batch_norm(x,None,None,training=True)", "F.layer_norm(x,(4,))", "F.group_norm(x,2)",
    "F.instance_norm(x[None])", "F.local_response_norm(x[None],2)", "F.unfold(x[None,None],2)",
    "F.fold(F.unfold(x[None,None],2),(3,4),2)", "F.pixel_shuffle(x[None,:,:].expand(4,3,4)[None],2)",
    "F.grid_sample(x[None,None],torch.zeros(1,2,2,2))", "F.affine_grid(torch.zeros(1,2,3),(1,1,2,2))",
    "F.scaled_dot_product_attention(x[None],x[None],x[None])", "F.gumbel_softmax(x)",
    "F.gumbel_softmax(x,hard=True)", "F.logsigmoid(x)", "F.softplus(x)", "F.softsign(x)",
    "F.tanhshrink(x)", "F.hardshrink(x)", "F.hardsigmoid(x)", "F.hardswish(x)", "F.celu(x)", "F.selu(x)",
    "F.normalize(x,p=1,dim=0)", "F.smooth_l1_loss(x,x,beta=0.5)", "F.gaussian_nll_loss(x,x,x.abs()+1)",
    "F.poisson_nll_loss(x,x)", "F.hinge_embedding_loss(x,torch.ones(3,4))",
    "F.soft_margin_loss(x,torch.ones(3,4))", "F.multi_margin_loss(x,x.argmax(1))",
    "F.multilabel_soft_margin_loss(x,torch.ones(3,4))", "torch.sigmoid(x).squeeze()",
    "torch.polygamma(1,x)", "torch.special.expit(x)", "torch.special.logsumexp(x,1)", "torch.conj(x)",
    "torch.lgamma(x)", "torch.heaviside(x,torch.tensor(0.0))", "torch.hypot(x,x)", "torch.logaddexp(x,x)",
    "torch.xlogy(x,x)", "torch.copysign(x,x)", "torch.nan_to_num(x)", "torch.trapz(x)",
    "torch.vander(x[0])", "torch.moveaxis(x,0,1)", "torch.swapaxes(x,0,1)", "torch.narrow(x,0,0,2)",
    "torch.select(x,0,1)", "x.select(1,0)", "x.index_add(0,torch.tensor([0]),x[:1])",
    "x.index_copy(0,torch.tensor([0]),x[:1])", "x.index_fill(0,torch.tensor([0]),0.0)",
    "x.scatter_add(0,torch.zeros(3,4,dtype=torch.long),x)",
    "torch.scatter(x,0,torch.zeros(3,4,dtype=torch.long),x)", "x.masked_scatter(x>0,x)",
    "x.put(torch.tensor([0]),torch.tensor([1.0]))", "x.sum_to_size(1,4)", "x.logcumsumexp(0)",
    "torch.softmax(x,1)", "torch.where(x>0,x,0.0)", "torch.where(x>0,x,torch.zeros(1))",
    "torch.where(x>0,x.double(),0.0)", "torch.lerp(x,x,x)", "torch.addr(torch.zeros(4,4),x[0],x[1])",
    "torch.cumulative_trapezoid(x)",
)  # fmt: skip
KEYS = (
    "[...]", "[0]", "[..., 0]", "[0, ...]", "[:, ..., 0]", "[None, ...]", "[..., None]", "[[0, 1]]",
    "[[0, 1], [1, 2]]", "[:, [0, 1]]", "[[0, 1], :]", "[[0, 1], 0]", "[0, [0, 1]]", "[[0, 1], None]",
    "[:, :, [0]]", "[[0], :, [0]]", "[[0, 1], :, 0]", "[torch.tensor([0, 1])]", "[torch.tensor(1)]",
    "[torch.tensor([[0, 1], [1, 0]])]", "[:, torch.tensor(1)]", "[torch.arange(2), torch.arange(2)]",
    "[torch.arange(2)[:, None], torch.arange(2)]", "[x > 0]", "[x[0] > 0]", "[x[:, 0, 0] > 0]",
    "[:, x[0] > 0]", "[True]", "[None]", "[0, 0]", "[0, 0, 0]", "[0:2]", "[::2, 1:]", "[-1]", "[-1:]",
    "[:, -1:, None]", "[range(2)]", "[(0, 1)]", "[[True, False]]", "[2:]", "[0, 1:][..., None]",
    "[[0, 1], ..., 0]", "[..., [0, 1]]", "[1:, [0, 1], 1:]",
)  # fmt: skip


def said(source: str) -> dict[str, Value]:
    """The names of a program as the tape leaves them."""
    read = parse("case.py", source.encode())
    assert isinstance(read, Source)
    findings = Findings(read.path, read.text.encode().splitlines())
    vm = Interpreter(Program(findings, read.tree, None, ROWS), HANDLERS, 200_000)
    vm.run(read.tree.body)
    return vm.names.scope.names


def done(source: str) -> dict[str, Any] | None:
    """The names of a program as torch leaves them; None where it refuses."""
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(source, names)
        except (RuntimeError, IndexError):
            return None
    return names


def errors(source: str) -> list[str]:
    """Where the tape says of `y` what isn't so."""
    names = done(source)
    if names is None:
        return []
    held = said(source)
    one, real = held.get("y"), names["y"]
    pairs = zip(one.items, real, strict=False) if isinstance(one, Seq) else [(one, real)]
    found = [
        error
        for tensor, result in pairs
        if isinstance(tensor, Tensor) and isinstance(result, torch.Tensor)
        for error in wrong(tensor, result, held["x"], names["x"])
    ]
    return [f"{source.splitlines()[-1]}: {error}" for error in found]


def wrong(tensor: Tensor, real: Any, source: Value, given: Any) -> Iterator[str]:
    shape = tensor.shape
    if shape is not None and (
        len(shape) != real.dim() or any(a not in (None, b) for a, b in zip(shape, real.shape, strict=True))
    ):
        yield f"has the shape {tuple(real.shape)}, not {shape}"
    if tensor.dtype and tensor.dtype != DTYPES.get(real.dtype):
        yield f"is {real.dtype}, not {tensor.dtype}"
    if tensor.requires is (not real.requires_grad):
        yield f"requires grad: {real.requires_grad}"
    if tensor.leaf is (not real.is_leaf):
        yield f"is a leaf: {real.is_leaf}"
    if tensor.layout is (not real.is_contiguous()):
        yield f"is contiguous: {real.is_contiguous()}"
    steps = strides.of(tensor) or real.stride()
    if not all(a == b or size == 1 for a, b, size in zip(steps, real.stride(), real.shape, strict=False)):
        yield f"has the strides {real.stride()}, not {steps}"
    shares = real.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
    if isinstance(source, Tensor) and tensor.storage is source.storage and not shares:
        yield "has memory of its own"


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_what_is_said_of_a_result(base: str) -> None:
    assert [text for each in OPERATIONS for text in errors(f"{HEAD}{base}\ny = {each}\n")] == []


@pytest.mark.parametrize("grad", ["", ", requires_grad=True"], ids=["of data", "of a result"])
def test_what_is_said_of_an_index(grad: str) -> None:
    base = f"x = torch.randn(2, 3, 4{grad}) * 2"
    assert [text for each in KEYS for text in errors(f"{HEAD}{base}\ny = x{each}\n")] == []
