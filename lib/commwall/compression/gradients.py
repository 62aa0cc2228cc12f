"""The tensors whose gradients data parallelism has to sum, as shapes.

Leaves out: gradients that tensor or pipeline parallelism have already cut up; divide
the shapes, or count the layers of one stage.
"""

from math import prod

from commwall.compression.codecs import Shape
from commwall.model import Model


def gradient_shapes(model: Model) -> tuple[Shape, ...]:
    """Shapes of all of a model's parameters, the vectors of a layer joined to one.

    >>> tiny = Model(1, 8, 2, 1, 32, 100, 16, gated_mlp=True, tied_embeddings=True)
    >>> gradient_shapes(tiny)[:4]        # query, key, value and output of the layer
    ((8, 8), (4, 8), (4, 8), (8, 8))
    >>> sum(map(prod, gradient_shapes(tiny))) == tiny.params
    True
    """
    width, hidden = model.head_dim, model.hidden
    queries, keys = (model.heads * width, hidden), (model.kv_heads * width, hidden)
    attention = [queries, keys, keys, queries[::-1]]
    dense = _feed_forward(model, model.ffn)
    experts = _feed_forward(model, model.moe_ffn) * (
        model.experts + model.shared_experts
    )
    tables = [(model.vocab, hidden)] * (1 if model.tied_embeddings else 2)
    if model.learned_positions:
        tables.append((model.seq, hidden))
    matrices = [
        *attention * model.layers,
        *dense * model.dense_layers,
        *[*experts, (model.experts, hidden)] * model.moe_layers,
        *tables,
    ]
    vectors = model.params - sum(map(prod, matrices))
    return (*matrices, (vectors,)) if vectors else tuple(matrices)


def _feed_forward(model: Model, width: int) -> list[Shape]:
    into = [(width, model.hidden)] * (2 if model.gated_mlp else 1)
    return [*into, (model.hidden, width)]
