"""Training code that is handed several networks, optimizers, losses, memories and devices."""

import torch
from torch import nn
import torch.nn.functional as F


def adversaries(generator, critic, for_critic, for_generator, loader):
    for real in loader:
        fake = generator(torch.randn_like(real))
        d_loss = critic(fake.detach()).mean() - critic(real).mean()
        for_critic.zero_grad()
        d_loss.backward()
        for_critic.step()
        g_loss = -critic(fake).mean()
        for_generator.zero_grad()
        g_loss.backward()
        for_generator.step()


class Cycle:
    def __init__(self, models, optimizers):
        self.there = models["there"].to("cpu")
        self.back = models["back"].to("cpu")
        self.judge = models["judge"].to("cpu")
        self.optimizers = optimizers

    def train(self, batch):
        loss = F.mse_loss(self.back(self.there(batch)), batch)
        self.optimizers["first"].zero_grad()
        loss.backward()
        self.optimizers["first"].step()
        loss = self.judge(self.there(batch).detach()).mean()
        self.optimizers["second"].zero_grad()
        loss.backward()
        self.optimizers["second"].step()


class Learner:
    def __init__(self, width):
        self.actor, self.critic = nn.Linear(width, 2), nn.Linear(width, 1)
        self.optimizer = torch.optim.Adam(self.critic.parameters())

    def learn(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.critic.parameters(), 0.5)
        self.optimizer.step()


class Policy(nn.Module):
    def __init__(self, seen, done):
        super().__init__()
        self.fc = nn.Linear(seen, done)

    def act(self, x):
        return self.fc(x).tanh()


class Player:
    def __init__(self, policy, lr):
        self.policy = policy.to("cpu")
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)

    def update(self, memory, batch_size, noise, clip):
        seen, reward = memory.sample(batch_size)
        reward = reward.reshape((batch_size, 1))
        disturbed = (torch.zeros_like(reward).normal_(0, noise)).clamp(-clip, clip)
        loss = (self.policy.act(seen).mean(1, keepdim=True) - reward - disturbed).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def counted(net, one, other, optimizer):
    for step, ((x, _), (y, _)) in enumerate(zip(one, other)):
        loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def far_away(net, loader, optimizer, device="cuda"):
    net.to(device)
    weight = torch.ones(1, device=device)
    for x, y in loader:
        loss = weight * F.mse_loss(net(x.to(device)), y.cuda())
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
