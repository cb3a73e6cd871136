"""The hand-written gradients against torch's autograd, where torch is installed: it is no dependency, not even of the tests."""

import numpy as np
import pytest

from odesim.lab.networks.transformer import Transformer
from tests.support.transformer_cases import CASES, EXTRAS, batch_for, make, start

torch = pytest.importorskip("torch", reason="compares with torch's autograd; install torch to run it")


def torch_loss(model: Transformer, p, batch):
    """The loss of one seed: p and batch hold its tensors; from torch's own functions."""
    F = torch.nn.functional
    d, H, tokens = model.width, model.heads, batch["tokens"]
    B, T = tokens.shape
    act = {"relu": F.relu, "gelu": F.gelu}[model.activation]
    allowed = torch.ones(T, T).tril().bool() if model.causal else torch.ones(T, T).bool()
    mask = torch.zeros(B, 1, T, T, dtype=torch.float64).masked_fill(~allowed, -torch.inf)
    if "log_weight" in batch:
        mask = mask + batch["log_weight"][:, None, None]

    def norm(x, name):
        return F.layer_norm(x, (d,), p[f"{name}_gain"], p[f"{name}_shift"])

    def linear(x, name):
        return F.linear(x, p[name].T, p.get(f"{name}_bias"))

    x = F.embedding(tokens, p["embedding"]) + (p["position"][:T] if model.positions else 0)
    for i in range(model.layers):
        for half in ("norm1", "norm2") if model.mlp else ("norm1",):
            u = norm(x, f"layer{i}.{half}") if model.norm == "pre" else x
            if half == "norm1":
                q, k, v = (linear(u, f"layer{i}.{n}").view(B, T, H, -1).transpose(1, 2) for n in ("query", "key", "value"))
                blind = mask.isneginf().all(-1, keepdim=True)  # a query that sees nothing: torch's softmax is nan
                a = ((q @ k.mT) / (d // H) ** 0.5 + mask.masked_fill(blind, 0.0)).softmax(-1).masked_fill(blind, 0.0)
                y = (a @ v).transpose(1, 2).reshape(B, T, d)
                y = linear(y, f"layer{i}.projection") if model.projection else y
            else:
                y = linear(act(linear(u, f"layer{i}.up")), f"layer{i}.down")
            y = x + y
            x = norm(y, f"layer{i}.{half}") if model.norm == "post" else y
    x = norm(x, "norm") if model.norm == "pre" else x
    weight = batch.get("weight", torch.ones(B))[:, None]
    if model.at == "last":
        x, counted = x[:, -1:], torch.ones(B, 1)
    elif model.at == "all":
        counted = torch.ones(B, T)
    else:
        counted = (batch["positions"] >= 0).double()
        x = x[torch.arange(B)[:, None], batch["positions"].clamp(min=0)]
    y = linear(x, "head")
    targets = batch["targets"].reshape(y.shape[:2])
    rows = F.cross_entropy(y.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="none").view(y.shape[:2])
    counted = counted * (targets >= 0)
    share = counted * weight
    return (rows * share).sum() / share.sum()


@pytest.mark.parametrize("extras", EXTRAS.values(), ids=EXTRAS)
@pytest.mark.parametrize("case", CASES)
def test_autograd(case, extras):
    """Loss and every gradient equal torch's to 1e-10, two orders above float64's rounding in a graph of this depth."""
    model = make(case)
    params, batch = start(model), batch_for(model, extras)
    loss, g = model.loss_and_gradients(params, batch)
    for r in range(len(loss)):
        p = {name: torch.tensor(value[r], requires_grad=True) for name, value in params.items()}
        theirs = torch_loss(model, p, {name: torch.tensor(value[r]) for name, value in batch.items()})
        theirs.backward()
        assert loss[r] == pytest.approx(theirs.item(), rel=1e-10)
        for name, t in p.items():
            assert t.grad is not None, name
            np.testing.assert_allclose(g[name][r], t.grad.numpy(), rtol=1e-10, atol=1e-12, err_msg=name)
