"""Loops, agents and losses as different people write them: what a driver has to be found for."""

import torch
from torch import nn
import torch.nn.functional as F


def train(model, loader, optimizer, criterion):
    model.train()
    total = 0
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def train_epoch(net, data_loader, opt, device):
    for images, labels in data_loader:
        images, labels = images.to(device), labels.to(device)
        logits = net(images).detach()
        loss = F.cross_entropy(logits, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()


class Agent:
    def __init__(self, net, optimizer, gamma=0.99):
        self.net = net
        self.optimizer = optimizer
        self.gamma = gamma

    def update(self, batch):
        obs, action, reward, next_obs, done = batch
        q = self.net(obs).gather(1, action)
        with torch.no_grad():
            target = reward + self.gamma * (1 - done) * self.net(next_obs).max(1, keepdim=True)[0]
        loss = F.mse_loss(q.detach(), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class DQN:
    def __init__(self, state_dim, action_dim, hidden=32, lr=1e-3):
        self.q = nn.Sequential(nn.Linear(state_dim, hidden), nn.ReLU(), nn.Linear(hidden, action_dim))
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)

    def learn(self, states, actions, rewards, next_states, dones):
        q = self.q(states).gather(1, actions)
        with torch.no_grad():
            nxt = self.q(next_states).max(1, keepdim=True)[0]
            target = rewards + 0.99 * nxt * (1 - dones)
        loss = F.mse_loss(q, target)
        loss.backward()
        self.opt.step()


def main():
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        step(model, opt, torch.randn(8, 4))


def step(model, opt, x):
    loss = model(x).pow(2).mean()
    loss.backward()
    opt.step()


def penalty(x):
    return (x.data**2).sum()
