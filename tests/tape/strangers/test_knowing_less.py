"""What isn't known is neither a yes nor a no: texts of which less is known, beside twins that are found."""

from __future__ import annotations

import pytest
from short import analysis
from short import listed as listed_in

from gradfix.defects import Convention
from gradfix.defects.leaning import certainty_of
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

IMPORTS = "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n"
UNDECIDED = {
    "what freezes a part of a network, it isn't known which": """
from elsewhere import blur
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.ReLU(inplace=True), nn.Linear(4, 4)))
for p in net[blur(0)].parameters():
    p.requires_grad = False
net(torch.ones(3, 4)).sum().backward()
""",
    "the same of what may be its parameters": """
from elsewhere import blur
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.ReLU(inplace=True), nn.Linear(4, 4)))
for p in blur(net[0].parameters()):
    p.requires_grad = False
net(torch.ones(3, 4)).sum().backward()
""",
    "the same of what was made of a part": """
from elsewhere import blur
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.ReLU(inplace=True), nn.Linear(4, 4)))
blur(net[0]).requires_grad_(False)
net(torch.ones(3, 4)).sum().backward()
""",
    "a term that may have a graph beside one of what was asked for as a leaf": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
other = blur(4, requires_grad=True)
for turn in range(3):
    part = other.reshape(2, 2)
    (part.abs().sum() + blur(w.pow(2).mean())).backward()
    if w.grad is not None:
        w.data -= 0.1 * w.grad
""",
    "a network of a class that hands back what it is given": """
from elsewhere import blur
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return x
net = blur(Net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn in range(2):
    loss = nn.functional.mse_loss(net(torch.zeros(3, 4)), blur(1))
    loss.backward()
    opt.zero_grad()
    opt.step()
""",
    "a view that torch doesn't detach in place, of what may be a leaf": """
from elsewhere import blur
w = torch.zeros(3, 4, requires_grad=blur(True))
v = w.unsqueeze(1).squeeze(1)
v.detach_()
(v * v).mean().backward(inputs=[w])
""",
    "a result that a method which isn't known may detach in place": """
w = nn.Parameter(torch.randn(3, 4))
x = w * 2
getattr(x, name)()
first, second, third = x.unbind()
first += 1
""",
    "a batch that is detached after a function has had it": """
from elsewhere import blur
def train(model, loader, optimizer):
    for batch, target in loader:
        optimizer.zero_grad()
        out = torch.log(blur(target.abs() + 1))
        out.detach_()
        nn.functional.mse_loss(out, batch).backward()
        optimizer.step()
""",
    "an optimizer that isn't known of such a network": """
from elsewhere import blur
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return x
net = blur(Net)
opt = blur(net.parameters())
w = torch.ones(3, 4, requires_grad=True)
for turn in range(2):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(torch.zeros(3, 4)), w)
    opt.step()
    loss.backward()
""",
    "a call that may be the step of another optimizer, before the first clearing of this one": """
def train(made, judge, loader, first, second, name):
    for x in loader:
        fake = made(x)
        judge(fake).mean().backward()
        getattr(first, name)()
        second.zero_grad()
        judge(fake.detach()).mean().backward()
        second.step()
""",
    "a view without recording of a leaf that may require grad": """
from elsewhere import blur
w = Variable(torch.randn(4), requires_grad=blur(True))
with torch.no_grad():
    w = w.view(-1).add_(1)
w.mean().backward()
""",
    "a loss of the smaller of two, of which one isn't known: or is it along a dimension?": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
x, c = blur(w), torch.zeros(4)
low = torch.min(c, x)
torch.where(low > 0, low, low).sum().backward()
""",
    "the same by a method": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
x, c = blur(w), torch.zeros(4)
high = c.max(x)
torch.where(high > 0, high, high).sum().backward()
""",
    "the indices along what may be a dimension, or the larger elements": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
larger = torch.zeros(2, 4).max(blur(w))[1]
larger.sum().backward()
""",
    "the largest of what isn't known, which is no pair": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
torch.max(blur(w))[1].backward()
""",
    "what may be a leaf itself, or its copy made in inference mode": """
from elsewhere import blur
w = Variable(blur(torch.randn(4)), requires_grad=True)
with torch.inference_mode():
    x = w.float()
(x / (w.abs() + 1)).mean().backward()
""",
    "a method without recording of what was made of a leaf": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
x = blur(w ** 2)
with torch.no_grad():
    v = x.view(2, 2)
torch.sum(v).backward()
""",
    "a call without recording of what was made of what may be a leaf": """
w = blur(torch.ones(4, requires_grad=True))
w.masked_fill_(w > 0, 0.0)
x = (w ** 2).sub(w)
x[0] += 1
torch.set_grad_enabled(False)
v = blur(x.view(2, 2))
torch.set_grad_enabled(True)
torch.sum(v).backward()
""",
    "a call without recording of what was asked to require grad": """
w = getattr(torch, name)(4, requires_grad=True)
x = w * 2.0
with torch.no_grad():
    w = nn.functional.relu_(blur(w))
w.norm().backward()
""",
    "what an optimizer holds that was made of an object out of sight": """
import elsewhere as torch
from elsewhere import blur
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return h
net = blur(Net)
opt = torch.optim.SGD(blur(net), lr=0.1)
w = nn.Parameter(torch.randn(3, 4))
for turn in range(3):
    out = net(torch.zeros(3, 4))
    (w * torch.randn(3, 4)).sum().backward()
    opt.zero_grad()
    opt.step()
""",
    "a network that may be behind another one, in a loss of which less is known": """
from elsewhere import blur
made, judge = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD(made.parameters(), lr=0.1)
for turn in range(2):
    fake = made(torch.randn(3, 4))
    blur(judge(blur(fake))).backward()
    opt.step()
""",
    "an argument that steps under a test and is cleared under another": """
def train(model, loader, optimizer, criterion, every):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        if i % every == 0:
            optimizer.zero_grad()
        (criterion(model(x), y) / every).backward()
        if (i + 1) % every == 0:
            optimizer.step()
""",
    "an argument that steps under a test and is cleared where that is tested again": """
def train(model, loader, optimizer, criterion, every):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / every).backward()
        if (i + 1) % every == 0:
            optimizer.step()
        due = (i + 1) % every == 0
        if due:
            optimizer.zero_grad()
""",
    "an argument that steps under a test and is cleared by its model": """
def train(model, loader, optimizer, criterion, every):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / every).backward()
        if (i + 1) % every == 0:
            optimizer.step()
            model.zero_grad()
""",
    "a gradient changed into what may be itself": """
w = torch.ones(4, requires_grad=True)
for turn in range(2):
    (w * 2).sum().backward()
    torch.add(w.grad, 1, out=blur(w.grad))
""",
    "vectors frozen as they are made, in a group that may hold more": """
words, head = nn.Embedding.from_pretrained(torch.ones(5, 3)), blur(nn.Linear)(3, 1)
opt = torch.optim.SGD([*words.parameters(), *head.parameters()], lr=0.1)
out = nn.Linear(3, 1)(words(torch.arange(3)))
out.sum().backward()
opt.step()
""",
    "a gradient asked for with options that aren't seen": """
w = torch.ones(4, requires_grad=True)
for turn in range(2):
    slope = torch.autograd.grad(w.exp().sum(), w, **blur(True))[0]
    (w.sum() + slope.pow(2).sum()).backward()
""",
    "an array asked for with options that aren't seen": """
w = torch.ones(4, requires_grad=True)
print(w.numpy(**blur(True)))
""",
    "what may have been written without recording, and has a graph without that": """
import elsewhere as torch
w = torch.rand(4).requires_grad_()
with torch.no_grad():
    w.mul_(w)
w.norm().backward()
""",
    "what an optimizer holds, beside a loss that is made of numbers": """
import elsewhere as torch
def train(model, loader, optimizer):
    for batch in loader:
        loss = torch.full([4], 0.5, requires_grad=True).mean()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    "what is made of a module that returns nothing of itself": """
from elsewhere import wrapped
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return x * x
net = wrapped(Net())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.ones(3, 4)).exp()
out.sum().backward()
out.sum().backward()
""",
    "what an optimizer holds that was made of an object which brings no gradient": """
import elsewhere as torch
from elsewhere import nn
class Net(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return x
net = Net()
opt = torch.optim.Adam(net.parameters())
w = torch.ones(3, 4, requires_grad=True)
for turn in range(2):
    out = net(torch.ones(3, 4))
    (out * w).mean().backward()
    opt.zero_grad()
    opt.step()
""",
    "what may have been written without recording, and backpropagated beside what was recorded": """
import elsewhere as torch
w = torch.rand(4).requires_grad_()
with torch.no_grad():
    w.mul_(w)
(w - nn.Linear(4, 4).weight[0]).mean().backward()
""",
    "a leaf behind what may not have been recorded, in a loss that was": """
from elsewhere import mode
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for turn in range(2):
    with mode():
        part = w.exp()
    (part * v).sum().backward()
    opt.step()
""",
    "a result beside a leaf that gradients are asked for, which may be behind it": """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
x = w + blur(v)
x.sum().backward(inputs=[v])
print(x.grad)
""",
    "a term that doesn't bring a gradient to a leaf, beside a root that may": """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
with torch.no_grad():
    view = w.view(4)
torch.autograd.backward([view.norm(), (blur(v) * blur(w * 2)).sum()])
""",
    "a row of what may have been made without recording": """
import elsewhere as torch
rows = torch.ones(3, 4)
rows.requires_grad = True
with torch.no_grad():
    for row in rows * 2:
        row += row
""",
    "a result that may have been made without recording, then the leaf of its own name": """
import elsewhere as torch
w = torch.rand(3, 4).requires_grad_()
with torch.no_grad():
    w = w.view(-1).add_(1)
w.pow(2).mean().backward()
print(w.grad)
""",
    "a leaf written between two calls that say no and yes": """
w = torch.ones(4, requires_grad=True)
blur(False)
w[-1] *= 2
blur(True)
""",
    "a method without recording that may return the leaf that it was called on": """
w = torch.ones(4, requires_grad=True)
with torch.no_grad():
    w = getattr(w, blur)()
torch.sum(w * w).backward()
""",
    "a grad mode that a loop may set otherwise in each turn": """
w, total = torch.ones(4, requires_grad=True), 0
for turn in range(2):
    torch.set_grad_enabled(False)
    torch.set_grad_enabled(blur(True))
    total = total + w.mean()
total.backward()
""",
    "a term that is cut off beside one that may have had a graph": """
w, v = torch.ones(4, requires_grad=True), torch.full([4], 0.5, requires_grad=blur(True))
for turn in range(2):
    loss = v.norm() + w.pow(2).mean().detach()
    loss.backward(retain_graph=True)
    v.requires_grad = False
""",
    "a gradient that somebody asks for, whether the tensor keeps it or not": """
w = torch.ones(4, requires_grad=True)
for turn in range(2):
    blur(w).mean().backward()
    if w.grad is not None:
        w = w - 0.1 * w.grad
""",
    "what an optimizer holds that was made of another one, beside what a backward fills": """
net, w = nn.Linear(4, 4), nn.Parameter(torch.randn(4))
opt = blur(torch.optim.SGD(net.parameters(), lr=0.1))
for turn in range(2):
    (blur(w) * w).sum().backward()
    opt.zero_grad()
    opt.step()
""",
    "what an optimizer holds that was made of a list of parameters, beside what a backward fills": """
import elsewhere as torch
net, w = nn.Linear(4, 4), torch.ones(4, requires_grad=True)
opt = torch.optim.Adam(list(net.parameters()))
for turn in range(2):
    (w ** 2).sum().backward()
    opt.zero_grad()
    opt.step()
""",
    "a network that is told something after its step": """
from elsewhere import Net, loss_of, batches
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in batches:
    opt.zero_grad()
    for part in range(net.parts):
        net.let_learn(part, True)
        loss_of(net(batch)).backward()
        opt.step()
        net.let_learn(part, False)
""",
    "two calls that read alike and answer differently": """
w = torch.ones(4, requires_grad=True)
x = w * 2
y = x.exp()
if blur(1):
    y = x + 1
if blur(1):
    y.neg_()
y.sum().backward()
""",
    "a leaf that may require grad by itself, in a loop over what isn't known": """
from elsewhere import blur
w = Variable(blur(torch.randn(4)), requires_grad=blur(True))
for turn in range(blur(3)):
    w.sum().backward()
""",
    "a leaf written through a view where recording may be off": """
w = torch.ones(4, requires_grad=True)
with mode(torch.no_grad()):
    w.view(-1).add_(1)
w.abs().max().backward()
print(w.grad)
""",
    "a leaf written through a view, and shared by two backwards": """
w = torch.ones(4, requires_grad=True)
with mode(torch.no_grad()):
    w.view(-1)[0] = 1.0
w.exp().sum().backward()
w.sum().backward()
""",
    "a call without recording that may return the leaf that it was given": """
w = torch.ones(4, requires_grad=True)
with torch.no_grad():
    w = nn.functional.relu_(blur(w))
w.norm().backward()
""",
    "a term of a loss that is asked for other gradients, it isn't known which": """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
loss = w.sum() + v.pow(2).mean() + w.pow(2).mean().item()
loss.backward(inputs=[blur(v)])
""",
    "a term that a call made, which may have cut it off, beside one that has a graph": """
from elsewhere import blur
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
for turn in range(2):
    loss = v.pow(2).mean() + blur(w.pow(2).mean())
    loss.backward()
    if w.grad is not None:
        with torch.no_grad():
            w.copy_(w - w.grad)
""",
    "what an optimizer holds that was made before all that a backward fills": """
from elsewhere import blur
opt = blur(torch.optim.SGD(nn.Linear(4, 4).parameters(), lr=0.1))
for turn in range(2):
    w = torch.ones(4, requires_grad=True)
    w.pow(2).sum().backward()
    opt.zero_grad()
    opt.step()
""",
    "the same where a call may have brought more into the loss": """
from elsewhere import blur
opt = blur(nn.Linear(4, 4))
w = torch.ones(4, requires_grad=True)
for turn in range(2):
    blur(w.pow(2)).backward()
    opt.zero_grad()
    opt.step()
""",
    "what a model does to its data before layers of which one isn't known": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.ReLU(inplace=True), nn.SiLU(inplace=True), getattr(nn, kind)(4, 4))
    def forward(self, x):
        h = x + x
        return self.layers(h) + h
""",
    "what one of torch's own switches off, which may be recording": """
h = torch.ones(3, 4, requires_grad=True) * 2
getattr(torch, name)(False)
x = h * 2
for row in x:
    row.clamp_(min=0)
getattr(torch, name)(True)
x.sum().backward()
""",
    "a graph cut in place where inference mode may leave it alone": """
from elsewhere import mode
def learn(model, loader, optimizer):
    for batch in loader:
        out = model(batch)
        with mode():
            out.detach_()
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
""",
    "a network that isn't asked for gradients, but may be given what is": """
from elsewhere import draw
made, judge = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.Linear(4, 2)
optimizer = torch.optim.Adam(made.parameters())
for turn in range(2):
    scores = judge(made(draw()))
    optimizer.zero_grad()
    scores[:, 0].mean().backward(retain_graph=True)
    optimizer.step()
    scores[:, 1].mean().backward(inputs=list(judge.parameters()))
""",
    "a view of a transposed leaf, if its sizes make it one": """
from elsewhere import blur
w = torch.full(blur([3, 4]), 0.5, requires_grad=True)
v = w.t().flatten()
v.pow_(2)
""",
    "the step of a norm that may have no weights": """
from elsewhere import blur
net = nn.Sequential(nn.LayerNorm(4, elementwise_affine=blur(False)), nn.Linear(4, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn in range(2):
    opt.zero_grad()
    loss = net(torch.ones(3, 4)).pow(2).mean()
    loss.backward(retain_graph=True)
    opt.step()
    loss.backward()
""",
    "a function that writes in place where recording may be off": """
from elsewhere import blur
x = torch.rand(3, 4).requires_grad_().sin()
for turn in range(2):
    with blur():
        nn.functional.relu(x, inplace=True)
x.sum().backward()
""",
    "an optimizer made of a network that isn't in the loss": """
from elsewhere import blur
net, w = nn.Linear(4, 4), nn.Parameter(torch.randn(3, 4))
opt = torch.optim.SGD(getattr(net, blur)(), lr=0.1)
for turn in range(2):
    (w ** 2).sum().backward()
    opt.zero_grad()
    opt.step()
""",
    "a loss made of what was cut off": """
from elsewhere import blur
def train(model, loader, optimizer):
    for batch in loader:
        loss = blur(model(batch).clone().data.pow(2).mean())
        loss.backward(retain_graph=True)
        optimizer.zero_grad()
        optimizer.step()
""",
    "a method that may have cut off what it is called on": """
from elsewhere import blur
w, v = torch.zeros(4, requires_grad=True), torch.ones(4, requires_grad=True)
for turn in range(2):
    loss = blur(v.norm()) + getattr(w.pow(2).mean(), blur)()
    loss.backward()
    if w.grad is not None:
        w.data.sub_(0.1 * w.grad.data)
""",
    "what a function may have detached in place": """
from elsewhere import blur
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
    def forward(self, x):
        h = nn.functional.relu(self.first(x))
        h += self.second(h)
        blur(h)
        return h
""",
    "a constant that is there to fail the test before its backward": """
def contrast(model, x, masks):
    total = torch.tensor(0.0)
    if len(masks) < 2:
        return total
    return model(x).pow(2).mean()
model = nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, masks in [(torch.ones(2, 3), [[1, 2], [3, 4]]), (torch.ones(2, 3), [])]:
    optimizer.zero_grad()
    loss = contrast(model, x, masks)
    if loss.item() > 0:
        loss.backward()
        optimizer.step()
""",
    "what a turn takes over from the one before, where the first takes over nothing": """
from elsewhere import loader, window
net, head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
for batch in loader:
    loss = torch.zeros(1)
    h, c = torch.zeros(2, 4), torch.zeros(2, 4)
    batch = batch.permute(1, 0, 2).to(torch.float32)
    for t in range(window):
        if t > 0:
            batch[t, :, 0] = guess
        h, c = net(batch[t].clone(), (h, c))
        guess = head(h).squeeze()
        loss += guess.sum()
    loss.backward()
""",
    "gradients that are cleared in every turn but the first": """
from elsewhere import loader
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i, batch in enumerate(loader):
    if i > 0:
        opt.zero_grad()
    net(batch).sum().backward()
    opt.step()
""",
    "what a function writes over what came in, if its decorator leaves recording on": """
from elsewhere import quiet
@quiet()
def squared(a):
    a *= a
class Net(nn.Module):
    def forward(self, x):
        squared(x)
        return x
""",
    "a batch that a network may have told to require grad": """
from elsewhere import blur
net = blur()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn in range(2):
    x = torch.full([3, 4], 0.5)
    net(x)
    x.div(2).expm1().pow(2).mean().backward()
    opt.step()
    opt.zero_grad()
""",
    "a constant that a loop was to add to, of which a later epoch runs one turn": """
from elsewhere import Net, data
class R:
    def __init__(self, id):
        self.id = id
relations = []
relations.append(R(0))
relations.append(R(1))
relations.append(R(2))
relations.append(R(3))
relations.append(R(4))
relations.append(R(5))
net = Net()
def fcn(pred):
    loss = torch.zeros(1)
    for relation in relations:
        k = relation.id
        if pred[k].nnz() == 0 or pred[k].none() == 0:
            continue
        else:
            loss += torch.mean(pred[k].values ** 2)
    return loss
for i in range(1000):
    out = net.forward(data)
    l = fcn(out)
    l.backward()
""",
    "what may be a view of what has a graph, made in inference mode": """
from elsewhere import blur
w, v = torch.rand(blur(3), 4).requires_grad_(), torch.ones(3, 4, requires_grad=True)
x = w * 2
with torch.inference_mode():
    y = x.t().reshape(3, 4)
(v[0] + y.mean(0)).sum().backward()
""",
    "what is detached in place, if it is what it was made of": """
from elsewhere import blur
w = torch.rand(3, 4).requires_grad_()
blur(w).detach_()
first, second, third = w.unbind()
first.relu_()
""",
    "what was given a gradient and may be a leaf": """
from elsewhere import blur
w = blur(torch.randn(3, 4))
w.backward(gradient=torch.ones_like(w))
total = w * 1
for part in (total, w):
    total += part.exp()
""",
    "a parameter out of reach of the last loss, which a method may have backpropagated before": """
from elsewhere import blur
w = nn.Parameter(torch.randn(3, 4))
loss = w.pow(2).mean()
getattr(loss, blur)()
torch.set_grad_enabled(False)
view = w.unsqueeze(0)
torch.set_grad_enabled(True)
view.sum().backward()
""",
    "a scheduler beside an optimizer that clears": """
def training(scheduler, loader):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.zero_grad()
    for i, x in enumerate(loader):
        net(x).sum().backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
""",
    "a backward of data alone, one of which may be told to require grad": """
from elsewhere import blur
def train(loader, optimizer):
    for x, y in loader:
        y.requires_grad = blur(True)
        torch.mean(y - x.sigmoid()).backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    "the same of what a call is given that may tell it so": """
from elsewhere import blur
def train(loader, optimizer):
    for x, y in loader:
        blur(y)
        blur(y, x.sigmoid()).backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    "a chain of layers that something unknown may have made longer in between": """
class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        layers = [nn.Linear(4, 4), nn.Sigmoid()]
        getattr(layers, name)(nn.BatchNorm1d(4))
        layers.append(nn.ReLU(inplace=True))
        self.body = nn.Sequential(*layers)
    def forward(self, x):
        return self.body(x)
""",
    "the same of a chain that is one already": """
class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
        getattr(self.body, name)(nn.BatchNorm1d(4))
        self.body.append(nn.ReLU(inplace=True))
    def forward(self, x):
        return self.body(x)
""",
    "a layer that is put in, it isn't known where": """
class Net(nn.Module):
    def __init__(self, place):
        super().__init__()
        layers = [nn.Linear(4, 4), nn.Sigmoid(), nn.ReLU(inplace=True)]
        layers.insert(place, nn.BatchNorm1d(4))
        self.body = nn.Sequential(*layers)
    def forward(self, x):
        return self.body(x)
""",
    "layers that a loop goes through, between which there may be others": """
from elsewhere import blur
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, layers = nn.Linear(4, 4), [nn.Sigmoid()]
        blur(layers)
        layers.append(nn.ReLU(inplace=True))
        self.body = nn.ModuleList(layers)
    def forward(self, x):
        x = self.layer(x)
        for layer in self.body:
            x = layer(x)
        return x
""",
    "what comes before the first layer of a whole model, if that is one which is there": """
class Net(nn.Module):
    def __init__(self, norm, make):
        super().__init__()
        layers = [nn.Sigmoid()]
        if norm:
            layers.append(make(4))
        layers.append(nn.ReLU(inplace=True))
        self.body = nn.Sequential(*layers)
    def forward(self, x):
        return self.body(x)
""",
    "one of two results that is given to what may detach it in place": """
class Net(nn.Module):
    def __init__(self, inplace):
        super().__init__()
        self.layer, self.act = nn.Linear(4, 4), nn.ReLU(inplace)
    def forward(self, x):
        h = self.layer(x)
        h = nn.functional.relu(self.act(h))
        h += nn.functional.relu(h)
        unbound(h)
        return h
""",
    "what may be a leaf, handed back by a function where nothing is recorded": """
from elsewhere import blur
w = blur(torch.randn(1))
with torch.no_grad():
    w = blur(w, 0.0)
torch.mean(w).backward()
""",
    "a forward that is only run with all its parameters frozen, for an input that learns": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        h = self.one(x)
        h += x
        with torch.inference_mode():
            h = h + 1
        return self.two(h)
net = Net().requires_grad_(False)
image = nn.Parameter(torch.rand(4, 4))
(net(image).mean() + image.abs().mean()).backward()
""",
    "a leaf that is written with recording turned on, in what may be inference mode": """
w = torch.ones(4, requires_grad=True)
with getattr(torch, unbound)():
    with torch.enable_grad():
        w[0] = 0.0
""",
    "the same in a function that something decorates": """
w = torch.ones(4, requires_grad=True)
@unbound()
def cleared():
    with torch.enable_grad():
        w[0] = 0.0
cleared()
""",
    "the same in what is entered from elsewhere": """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
with blur():
    with torch.enable_grad():
        w[0] = 0.0
""",
    "the gradient of a result that a backward may have come to through what isn't known": """
w = torch.rand(3, 4).requires_grad_()
x = w.sum(dim=0) - 0.5
loss = w.pow(2).mean() + getattr(x.pow(2).mean(), blur)()
loss.backward()
print(x.grad)
""",
    "the gradient of a leaf that is handed to what isn't known in each turn": """
from elsewhere import blur
from torch.autograd import Variable
w = Variable(blur(1), requires_grad=True)
for turn in range(3):
    loss = blur(w)
    loss.requires_grad_()
    loss.backward()
    if w.grad is not None:
        with blur():
            w.copy_(w - w.grad)
        w.grad = None
""",
    "data of a counted loader that somebody elsewhere has wrapped, beside a model whose result is left": """
from elsewhere import wrapped
def train(model, loader, optimizer):
    for step, (batch, target) in wrapped(enumerate(loader)):
        out = model(batch)
        loss = (-target).sum()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    "data of a loader that somebody elsewhere has wrapped, beside a model whose result is left": """
from elsewhere import wrapped
def train(model, loader, optimizer):
    for step, (batch, target) in enumerate(wrapped(loader)):
        out = model(batch)
        loss = (-target).sum()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
""",
}
FOUND = {
    "what an optimizer holds, beside a loss of what a run of the model gives": (
        "zero_grad_before_step",
        """
from elsewhere import run
def train(model, loader, optimizer):
    for step, (batch, target) in enumerate(run(model, loader)):
        out = model(batch)
        loss = (-target).sum()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    ),
    "what an optimizer holds, beside a loss that is made of what a model returns": (
        "zero_grad_before_step",
        """
import elsewhere as torch
def train(model, loader, optimizer):
    for batch in loader:
        loss = torch.full([4], model(batch), requires_grad=True).mean()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    ),
    "what is made of a module that may return anything": (
        "backward_twice",
        """
from elsewhere import wrapped
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return x * h
net = wrapped(Net())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.ones(3, 4)).exp()
out.sum().backward()
out.sum().backward()
""",
    ),
    "what an optimizer holds that was made of an object which may bring a gradient": (
        "zero_grad_before_step",
        """
import elsewhere as torch
from elsewhere import nn
class Net(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        h = self.layer(x)
        return h
net = Net()
opt = torch.optim.Adam(net.parameters())
w = torch.ones(3, 4, requires_grad=True)
for turn in range(2):
    out = net(torch.ones(3, 4))
    (out * w).mean().backward()
    opt.zero_grad()
    opt.step()
""",
    ),
    "what autocast was entered around, beside what it wasn't": (
        "inplace_overwrites_saved",
        """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
with torch.autocast("cpu"):
    y = w.exp()
    y += 1
(y * v).sum().backward()
""",
    ),
    "a leaf behind what may not have been recorded, where nothing else has a graph": (
        "missing_zero_grad",
        """
from elsewhere import mode
w = torch.ones(4, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for turn in range(2):
    with mode():
        part = w.exp()
    (part * 2).sum().backward()
    opt.step()
""",
    ),
    "what was recorded where the whole loss was, whatever was entered": (
        "inplace_overwrites_saved",
        """
from elsewhere import mode
w = torch.ones(4, requires_grad=True)
with mode():
    y = w.exp()
    y += 1
    loss = y.sum()
loss.backward()
""",
    ),
    "a leaf in a loss, beside what may not have been recorded": (
        "missing_zero_grad",
        """
from elsewhere import mode
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
opt = torch.optim.SGD([v], lr=0.1)
for turn in range(2):
    with mode():
        part = w.exp()
    (part * v).sum().backward()
    opt.step()
""",
    ),
    "a result on the way to a leaf that gradients are asked for": (
        "grad_of_non_leaf",
        """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
x = w + v
x.sum().backward(inputs=[v])
print(x.grad)
""",
    ),
    "a term that was cut off from a loss, which is written afterwards": (
        "severed_term",
        """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
loss = v.mean() + w.pow(2).mean().item()
loss.backward()
loss.sigmoid_()
""",
    ),
    "a copy that was asked not to require grad": (
        "converted_loss_path",
        """
from elsewhere import blur
w = Variable(blur(torch.randn(4)))
for turn in range(blur(3)):
    w.sum().backward()
""",
    ),
    "a result written through a view where recording may be off": (
        "grad_of_non_leaf",
        """
w = torch.ones(4, requires_grad=True) * 2
with mode(torch.no_grad()):
    w.view(-1).add_(1)
w.abs().max().backward()
print(w.grad)
""",
    ),
    "a result of such a leaf that is shared by two backwards": (
        "backward_twice",
        """
w = torch.ones(4, requires_grad=True)
with mode(torch.no_grad()):
    w.view(-1)[0] = 1.0
y = w.exp()
y.sum().backward()
y.mean().backward()
""",
    ),
    "a call without recording of a batch": (
        "forward_in_no_grad",
        """
with torch.no_grad():
    out = nn.functional.relu_(net(batch))
out.norm().backward()
""",
    ),
    "a term of a loss that is asked for its gradient": (
        "severed_term",
        """
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
loss = w.sum() + v.pow(2).mean() + w.pow(2).mean().item()
loss.backward(inputs=[w])
""",
    ),
    "a loss that a call made, and nothing else has a graph": (
        "missing_zero_grad",
        """
from elsewhere import blur
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
for turn in range(2):
    loss = blur(w.pow(2).mean())
    loss.backward()
    if w.grad is not None:
        with torch.no_grad():
            w.copy_(w - w.grad)
""",
    ),
    "a network of a class that is given back by its forward, in a like training": (
        "zero_grad_before_step",
        """
from elsewhere import blur
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x)
net = blur(Net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for turn in range(2):
    loss = nn.functional.mse_loss(net(torch.zeros(3, 4)), blur(1))
    loss.backward()
    opt.zero_grad()
    opt.step()
""",
    ),
    "one of several views, written where it is one of too many to be told apart": (
        "inplace_on_view_of_many",
        """
class Attention(nn.Module):
    def __init__(self, size, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3 * size, size))
        if bias:
            self.bias = nn.Parameter(torch.ones(3 * size))
        else:
            self.register_parameter("bias", None)
    def forward(self, query, key, value):
        same = query.data_ptr() == key.data_ptr()
        if same:
            q, k, v = self.projected(query).chunk(3, dim=-1)
        elif key.data_ptr() == value.data_ptr():
            k, v = self.projected(key).chunk(2, dim=-1)
            q = self.projected(query)
        else:
            q = self.projected(query)
        q *= 0.5
        return q
    def projected(self, x):
        bias = self.bias
        if bias is not None:
            bias = bias[0:3]
        return nn.functional.linear(x, self.weight[0:3, :], bias)
""",
    ),
    "what an optimizer may hold that was made after all that a backward fills": (
        "zero_grad_before_step",
        """
from elsewhere import blur
w = torch.ones(4, requires_grad=True)
opt = blur(w)
for turn in range(2):
    w.pow(2).sum().backward()
    opt.zero_grad()
    opt.step()
""",
    ),
    "what a block does to what it has weighed before layers without parameters": (
        "inplace_module",
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.layers = nn.Sequential(nn.ReLU(inplace=True), nn.SiLU(inplace=True), nn.Softplus())
    def forward(self, x):
        h = x + self.weight
        return self.layers(h) + h
""",
    ),
    "rows of what is recorded": (
        "inplace_on_view_of_many",
        """
h = torch.ones(3, 4, requires_grad=True) * 2
x = h * 2
for row in x:
    row.clamp_(min=0)
x.sum().backward()
""",
    ),
    "a graph cut in place where its backward runs as well": (
        "detached_loss_path",
        """
from elsewhere import mode
def learn(model, loader, optimizer):
    with mode():
        for batch in loader:
            out = model(batch)
            out.detach_()
            optimizer.zero_grad()
            out.sum().backward()
            optimizer.step()
""",
    ),
    "a network that is asked for gradients after its step": (
        "step_before_backward",
        """
from elsewhere import draw
made, judge = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.Linear(4, 2)
optimizer = torch.optim.Adam(made.parameters())
for turn in range(2):
    scores = judge(made(draw()))
    optimizer.zero_grad()
    scores[:, 0].mean().backward(retain_graph=True)
    optimizer.step()
    scores[:, 1].mean().backward(inputs=list(made.parameters()))
""",
    ),
    "a network stepped while one test of its size was made": (
        "inplace_overwrites_saved",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
    def forward(self, x):
        h = self.first(x)
        if h.dim() == 2:
            h = nn.functional.elu(x)
        h = self.second(h)
        h += self.first(h)
        return h
""",
    ),
    "the gradient of what was written on either path": (
        "grad_of_non_leaf",
        """
import sys
w, v = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
y = w.exp()
if len(sys.argv) > 3:
    y = w.sigmoid()
z = y.detach().add_(v)
z.abs().max().backward()
print(z.grad)
""",
    ),
    "what a turn takes over from the one before, and the first of the next ones too": (
        "backward_twice",
        """
from elsewhere import loader, window
net, head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
guess = torch.zeros(2)
for batch in loader:
    loss = torch.zeros(1)
    h, c = torch.zeros(2, 4), torch.zeros(2, 4)
    batch = batch.permute(1, 0, 2).to(torch.float32)
    for t in range(window):
        batch[t, :, 0] = guess
        h, c = net(batch[t].clone(), (h, c))
        guess = head(h).squeeze()
        loss += guess.sum()
    loss.backward()
""",
    ),
    "gradients that are cleared in the first turn alone": (
        "missing_zero_grad",
        """
from elsewhere import loader
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i, batch in enumerate(loader):
    if i == 0:
        opt.zero_grad()
    net(batch).sum().backward()
    opt.step()
""",
    ),
    "a weight that is first looked at in a branch, and written on the other one": (
        "inplace_on_leaf",
        """
import sys
class Tagger(nn.Module):
    def __init__(self, freeze):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        if freeze:
            self.table.weight.requires_grad = False
tagger = Tagger(freeze=len(sys.argv) > 1)
tagger.table.weight.copy_(torch.ones(5, 3))
""",
    ),
}


def listed(body: str) -> set[str]:
    source = parse("program.py", (IMPORTS + body).encode())
    assert isinstance(source, Source)
    defects = analyse(source).defects
    return {d.kind for d in defects if d.impact != "style" and d.certainty != "suspect"}


@pytest.mark.parametrize("body", UNDECIDED.values(), ids=UNDECIDED)
def test_nothing_is_listed_of(body: str) -> None:
    assert not listed(body)


@pytest.mark.parametrize(("kind", "body"), FOUND.values(), ids=FOUND)
def test_its_twin_is_found(kind: str, body: str) -> None:
    assert kind in listed(body)


CONDITIONS = {
    "a view that is used only under a test, after it was written": (
        "blur(1)",
        """
w = torch.rand(3, 4).requires_grad_()
first, second, third = w.unbind()
with torch.no_grad():
    w.mul_(2)
if blur(1):
    print(first.mul(first))
w.sum().backward()
""",
    ),
    "a mode that each turn may set otherwise": (
        "not blur(True)",
        """
w = torch.ones(3, 4, requires_grad=True)
for turn in range(3):
    torch.set_grad_enabled(blur(True))
    (w * 2).sum().backward()
""",
    ),
}


@pytest.mark.parametrize(("condition", "body"), CONDITIONS.values(), ids=CONDITIONS)
def test_it_is_found_under_a_condition(condition: str, body: str) -> None:
    source = parse("program.py", (IMPORTS + body).encode())
    assert isinstance(source, Source)
    assert {d.condition for d in analyse(source).defects if d.impact != "style"} == {condition}


DETACHED = """
class Net(nn.Module):
    def forward(self, x):
        x = x.detach().requires_grad_()
        x[x > 0] = 0
        return x
"""


@pytest.mark.parametrize("base", ["nn.Module", "elsewhere(nn.Module)"])
def test_a_detached_leaf_is_one_whatever_it_was_made_of(base: str) -> None:
    source = parse("program.py", (IMPORTS + DETACHED.replace("nn.Module", base)).encode())
    assert isinstance(source, Source)
    assert [(d.kind, d.certainty) for d in analyse(source).defects] == [("inplace_on_leaf", "likely")]


TOO_DEEP = """
def turned(x, h):
    return torch.cos(x)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
    def forward(self, x):
        h = torch.tanh(self.layer(x))
        out = turned(x, h)
        h += self.norm(h)
        return out
"""


@pytest.mark.parametrize("depth", [3, 2, 1])
def test_what_is_too_deep_to_be_followed_may_return_nothing_of_what_it_got(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradfix.tape.python.following.DEPTH", depth)
    assert not listed(TOO_DEEP)


AGAIN = """
w = torch.ones(4, requires_grad=True)
loss = (w ** 2).sum()
for turn in range({turns}):
    loss.tanh_()
loss.backward()
"""


@pytest.mark.parametrize(("turns", "expected"), [("2", ["certain"]), ("blur(2)", ["likely"]), ("1", [])])
def test_what_takes_a_second_turn_is_certain_where_there_is_one(turns: str, expected: list[str]) -> None:
    source = parse("program.py", (IMPORTS + AGAIN.format(turns=turns)).encode())
    assert isinstance(source, Source)
    assert [d.certainty for d in analyse(source).defects if d.impact != "style"] == expected


ROOTS = """
w = torch.ones(4, requires_grad=True)
loss = w.norm()
torch.autograd.backward({roots})
print(loss.grad)
"""


@pytest.mark.parametrize("roots", ["[loss, w.sum()]", "blur([loss, w.sum()])", "blur(blur(loss))"])
def test_the_root_of_a_backward_is_asked_for_its_gradient_as_ever_when_it_goes_through_an_unknown_call(
    roots: str,
) -> None:
    assert not listed(ROOTS.format(roots=roots))


SWITCHED = """
w = torch.ones(4, requires_grad=True)
for _ in range(2):
    torch.set_grad_enabled(False)
    torch.set_grad_enabled({mode})
loss = (w * 2).sum()
loss.requires_grad_()
loss.backward()
"""


@pytest.mark.parametrize("mode", ["True", "blur(True)"])
def test_what_takes_one_test_to_come_out_both_ways_in_turn_and_nothing_else_is_not_listed(mode: str) -> None:
    assert not listed(SWITCHED.format(mode=mode))


PARTED = """
import torch
from elsewhere import blur
w = torch.ones(3, 4, requires_grad=True)
c = {factory}(3, 4)
x = w * 2
if blur(0):
    c.{switch}
else:
    x = blur(x)
v = c.t().reshape(3, 4)
n = v.pow(2).sum().sqrt()
v -= n
(x.expm1().sum() + v.pow(2).mean()).backward()
"""


@pytest.mark.parametrize("switch", ["requires_grad = True", "requires_grad_()"])
@pytest.mark.parametrize("factory", ["torch.rand", "blur"])
def test_what_is_found_out_in_one_arm_of_what_is_not_known_is_not_so_in_the_other(
    factory: str, switch: str
) -> None:
    source = parse("program.py", PARTED.format(factory=factory, switch=switch).encode())
    assert isinstance(source, Source)
    (condition,) = {d.condition for d in analyse(source).defects if d.kind == "inplace_overwrites_saved"}
    assert condition == "blur(0)"


SWITCHING = """
import torch
w = torch.ones(3, 4, requires_grad=True)
def embed(x, deep=20):
    {switch}
    return x * 2 if deep == 0 else embed(x, deep - 1)
y = {call}
for row in w * 2:
    row.sigmoid_()
"""


@pytest.mark.parametrize(
    "call", ["embed(torch.ones(3))", "blur(0)(torch.ones(3))", "blur(embed)(torch.ones(3))"]
)
def test_what_is_called_and_not_followed_may_have_turned_recording_off_where_a_statement_does(
    call: str,
) -> None:
    def said(switch: str) -> list[str]:
        source = parse("program.py", SWITCHING.format(call=call, switch=switch).encode())
        assert isinstance(source, Source)
        return [d.kind for d in analyse(source).defects if d.certainty != "suspect"]

    assert not said("torch.set_grad_enabled(False)")
    assert said("pass") == ["inplace_on_view_of_many"]


RESHAPED = """
def write(n):
    w = torch.randn({sizes}, requires_grad=True)
    w.transpose(0, 1).reshape({asked})[0] = 0.0
write(1)
"""


@pytest.mark.parametrize("asked", ["-1", "-blur(1)", "blur(1)", "n", "2, blur(1)"])
def test_what_is_reshaped_to_sizes_that_are_not_known_is_not_shown_as_it_lies(asked: str) -> None:
    assert not listed(RESHAPED.format(sizes="3, 4", asked=asked))


def test_what_is_reshaped_to_its_own_sizes_is_a_view() -> None:
    assert listed(RESHAPED.format(sizes="3, 4", asked="4, 3")) == {"inplace_on_leaf"}


CHOSEN = """
w = torch.randn(3, 4, requires_grad=True)
values, places = torch.topk(w * 2, {many}, dim=1)
{of}.numpy()
"""


@pytest.mark.parametrize("many", ["2", "blur(2)", "k=blur(2)"])
def test_places_are_no_part_of_a_graph_however_many_are_chosen(many: str) -> None:
    assert not listed(CHOSEN.format(many=many, of="places"))


@pytest.mark.parametrize("many", ["2", "blur(2)"])
def test_values_are_part_of_a_graph_however_many_are_chosen(many: str) -> None:
    assert listed(CHOSEN.format(many=many, of="values")) == {"numpy_of_graph"}


HANDED_BACK = """
w = torch.zeros(3, 4, requires_grad={asked})
with torch.no_grad():
    w = getattr(w, blur)()
loss = (w + w).sum()
loss.backward()
"""


@pytest.mark.parametrize("asked", ["True", "blur(True)"])
def test_an_unknown_method_may_hand_back_a_leaf_where_nothing_is_recorded(asked: str) -> None:
    assert not listed(HANDED_BACK.format(asked=asked))


ASKED_TO_LEARN = """
class Split({base}):
    def forward(self, x):
        {asks}
        one, two = (x * 2).split(2, 1)
        one += one
        return one
"""


@pytest.mark.parametrize("base", ["nn.Module", "blur"])
def test_what_is_made_to_require_grad_takes_no_convention_any_more(base: str) -> None:
    def said(asks: str) -> list[object]:
        source = parse("program.py", (IMPORTS + ASKED_TO_LEARN.format(base=base, asks=asks)).encode())
        assert isinstance(source, Source)
        found = [d for d in analyse(source).defects if d.kind == "inplace_on_view_of_many"]
        return [d.lean for d in found]

    by_mode = frozenset({Convention.G})
    assert said("x.requires_grad_()") == [by_mode]
    assert by_mode not in said("pass")


ERASED = """
def train(model, loader, optimizer):
    for batch, target in loader:
        out = model(batch)
        {between}
        loss = {loss}
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
"""
ON_ONE_WAY = "if blur(1) == 2: out = torch.exp(target)"


@pytest.mark.parametrize(
    ("between", "loss", "told"),
    [
        pytest.param("pass", "out.sum()", [""], id="the model's"),
        pytest.param(ON_ONE_WAY, "out.sum()", ["blur(1) != 2"], id="data's on one way"),
        pytest.param(ON_ONE_WAY, "blur(out.sum())", ["blur(1) != 2"], id="what isn't known of that"),
        pytest.param("out = blur(target)", "out.sum()", [], id="what isn't known of data"),
    ],
)
def test_what_is_erased_is_what_the_network_brought(between: str, loss: str, told: list[str]) -> None:
    text = "import torch\nfrom elsewhere import blur\n" + ERASED.format(between=between, loss=loss)
    source = parse("program.py", text.encode())
    assert isinstance(source, Source)
    found = [d for d in analyse(source).defects if d.kind == "zero_grad_before_step"]
    assert [d.condition for d in found if d.certainty != "suspect"] == told


INFERRED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(4, 4), nn.LayerNorm(4, elementwise_affine=False)
    def forward(self, x):
        h = self.first(x)
        with {mode}:
            h = h.masked_fill(h > 0, 0.0)
        h += self.norm(h)
        return h
"""


@pytest.mark.parametrize("mode", ["torch.inference_mode()", "blur()", "blur(torch)()"])
def test_what_a_forward_returns_may_have_lost_its_graph_in_a_context_that_is_not_known(mode: str) -> None:
    assert "inplace_overwrites_saved" not in listed(INFERRED.format(mode=mode))
    assert "inplace_overwrites_saved" in listed(INFERRED.format(mode="torch.enable_grad()"))


TAUGHT = """
class Net(nn.Module):
    def __init__(self, edited):
        super().__init__()
        self.edited, self.volume = edited, nn.Parameter(torch.zeros(8, 8))
    def forward(self, x):
        {test}
            self.volume[:4] = -100
        return (self.volume * x).sum()
"""


def test_a_parameter_that_is_written_on_one_way_only_may_be_so_where_nothing_is_recorded() -> None:
    assert "inplace_on_leaf" not in listed(TAUGHT.format(test="if self.edited:"))
    assert "inplace_on_leaf" in listed(TAUGHT.format(test="if True:"))
    assert "inplace_on_leaf" in listed(
        TAUGHT.format(test="if self.edited:") + "Net(blur())(torch.ones(8, 8))"
    )


@pytest.mark.parametrize(
    ("value", "certainty"), [("True", ["certain"]), ("False", []), ("blur(False)", ["suspect"])]
)
def test_a_switch_that_is_misspelt_is_listed_where_it_would_change_something(
    value: str, certainty: list[str]
) -> None:
    source = parse("program.py", f"{IMPORTS}\nw = torch.zeros(3)\nw.require_grad = {value}\n".encode())
    assert isinstance(source, Source)
    assert [d.certainty for d in analyse(source).defects if d.impact != "style"] == certainty


SHIFTED = """
class Shift(nn.Conv2d):
    def __init__(self):
        super().__init__(3, 3, 1)
        self.requires_grad = False
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift, self.body = Shift(), nn.Conv2d(3, 3, 3)
        for param in {frozen}.parameters():
            param.requires_grad = False
    def forward(self, x, y):
        return (self.body(self.shift(x)) - y).abs().mean()
"""


@pytest.mark.parametrize(("frozen", "told"), [("self", set()), ("self.body", {"requires_grad_misspelt"})])
def test_a_switch_set_in_vain_is_told_unless_its_owner_does_the_same_in_the_end(
    frozen: str, told: set[str]
) -> None:
    assert listed(SHIFTED.format(frozen=frozen)) == told


GIVEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(1, 1)
        self.null = [nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))]
    def configure_optimizers(self):
        return [torch.optim.Adam(self.body.parameters()), torch.optim.Adam({given})]
    def forward(self, x, i):
        return self.body(x * self.null[i])
"""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("self.null", set()),
        ("[*self.null, *self.body.parameters()]", set()),
        ("self.body.parameters()", {"unregistered_parameters"}),
    ],
)
def test_what_a_method_that_nobody_calls_gives_to_an_optimizer_may_be_trained(
    given: str, told: set[str]
) -> None:
    assert listed(GIVEN.format(given=given)) == told


EITHER = """
import sys
net = nn.Linear(4, 4)
w = torch.ones(4, requires_grad=True)
x = torch.ones(3, 4)
if len(sys.argv) > 5:
    y = x.sigmoid()
else:
    y = {other}
for turn in range(2):
    (y * x).sum().backward()
"""


@pytest.mark.parametrize(("other", "certainty"), [("x.exp()", "certain"), ("x * w", "suspect")])
def test_nothing_to_be_learnt_is_certain_where_no_way_brings_it(other: str, certainty: str) -> None:
    source = parse("program.py", f"{IMPORTS}{EITHER.format(other=other)}".encode())
    assert isinstance(source, Source)
    told = [d.certainty for d in analyse(source).defects if d.kind == "no_leaf_requires_grad"]
    assert set(told) == {certainty}


SAVED = """
w, v = torch.ones(3, 4, requires_grad=True), torch.ones(3, 4, requires_grad=True)
x = w * 2
with {mode}:
    seen = x.t().reshape(3, 4)
mask = seen > 0
kept = seen.masked_fill(mask, 0.0)
mask[0] = True
(kept * v).mean().backward()
"""


@pytest.mark.parametrize(
    ("mode", "told"), [("torch.enable_grad()", {"inplace_overwrites_saved"}), ("blur()", set())]
)
def test_what_is_made_of_what_may_not_be_recorded_may_have_no_graph_either(mode: str, told: set[str]) -> None:
    assert listed(SAVED.format(mode=mode)) == told


SHOWN = """
w = torch.ones(3, 4, requires_grad=True)
x = w * 2
with {mode}:
    v = x.T
x.detach_().requires_grad_()
v[:2].mul_(2)
"""


@pytest.mark.parametrize(("mode", "told"), [("torch.enable_grad()", {"inplace_on_leaf"}), ("blur()", set())])
def test_a_view_of_what_became_a_leaf_later_may_have_been_made_where_nothing_is_recorded(
    mode: str, told: set[str]
) -> None:
    assert listed(SHOWN.format(mode=mode)) == told


@pytest.mark.parametrize("told", ["False", "blur(False)"])
def test_what_nothing_binds_and_is_told_what_may_be_yes_or_no_may_turn_recording_off(told: str) -> None:
    assert not listed(f"w = torch.ones(3, requires_grad=True)\nswitched({told})\nw[:] = w * 2\n")
    assert listed("w = torch.ones(3, requires_grad=True)\nw[:] = w * 2\n") == {"inplace_on_leaf"}


MEMBERS = """
from elsewhere import Mode
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def run(loader, mode):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        if mode {same} {train}:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
with torch.no_grad():
    run(blur(0), {mode})
"""


@pytest.mark.parametrize(
    ("same", "train", "mode", "told"),
    [
        ("==", "Mode.TRAIN", "Mode.EVAL", set()),
        ("is", "Mode.TRAIN", "Mode.EVAL", set()),
        ("==", "blur(Mode).TRAIN", "blur(Mode).EVAL", {"forward_in_no_grad"}),
        ("==", "Mode.TRAIN", "Mode.TRAIN", {"forward_in_no_grad"}),
    ],
)
def test_what_one_owner_calls_differently_is_not_taken_for_one(
    same: str, train: str, mode: str, told: set[str]
) -> None:
    assert listed(MEMBERS.format(same=same, train=train, mode=mode)) == told


LOGGED = """
net, loss_of = nn.Linear(4, 1), nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def turn(loader):
    for i, (x, y) in enumerate(loader):
        loss = loss_of(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 50 == 0:
            {logs}
    return loss
losses = []
for epoch in range(9):
    losses.append(turn(blur(0)))
"""


def test_what_is_a_plain_number_on_another_path_is_not_detached() -> None:
    assert not listed(LOGGED.format(logs="loss = loss.item()"))
    assert listed(LOGGED.format(logs="print(loss.item())")) == {"graph_leak"}


SAVED_WITHIN = """
w = torch.randn(3, 4, requires_grad=True)
with {mode}:
    with torch.inference_mode():
        z = w * 2
    x = z * w
w.abs().max().backward()
"""


@pytest.mark.parametrize("mode", ["torch.autograd.no_grad()", "getattr(torch, blur).no_grad()"])
def test_what_may_not_be_recorded_may_be_made_of_what_was_made_in_inference_mode(mode: str) -> None:
    assert listed(SAVED_WITHIN.format(mode=mode)) == set()


def test_what_is_recorded_is_made_of_nothing_that_was_made_in_inference_mode() -> None:
    assert listed(SAVED_WITHIN.format(mode="torch.enable_grad()")) == {"forward_in_no_grad"}


WRITTEN_BY = """
def shifted(b):
    with torch.no_grad():
        {method}
    b.data += 1
    return b @ b
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.PReLU()
    def forward(self, x):
        out = self.first(x)
        shifted(x)
        return self.second(out)
"""


@pytest.mark.parametrize(
    ("method", "expected"),
    [("pass", {"write_through_data"}), ("b.abs_()", set()), ("getattr(b, unknown)()", set())],
)
def test_a_method_by_whatever_name_may_write_what_is_data_then(method: str, expected: set[str]) -> None:
    assert listed_in(WRITTEN_BY.format(method=method)) == expected


IN_MODE = """
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(p=0.5, inplace=True), nn.PReLU())
{mode}
net(torch.ones(3, 4)).pow(2).mean().backward()
"""


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("pass", ["certain"]),
        ("net.eval()", []),
        ("net.train(flag)", ["likely"]),
        ("getattr(net, unknown)()", ["suspect"]),
    ],
)
def test_a_method_by_whatever_name_may_set_the_mode(mode: str, expected: list[str]) -> None:
    assert [certainty_of(one.lean) for one in analysis(IN_MODE.format(mode=mode)).defects] == expected


ON_ONE_WAY = """
class Net(nn.Module):
    def __init__(self, residual=True):
        super().__init__()
        self.residual, self.layer = residual, nn.Linear(4, 4)
    def forward(self, x):
        h = {made}
        if self.residual:
            h += self.layer(h)
        return h
"""


@pytest.mark.parametrize("made", ["x.clone()", "torch.tanh(x)", "getattr(x, unknown)()"])
def test_what_is_in_a_graph_on_one_way_leans_on_what_that_way_takes(made: str) -> None:
    found = analysis(ON_ONE_WAY.format(made=made)).defects
    said = {one.kind: (certainty_of(one.lean), one.condition) for one in found}
    assert said["inplace_overwrites_saved"] == ("likely", "self.residual")
