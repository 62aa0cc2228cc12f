"""The shape of a transformer, and what follows from it by counting.

Leaves out: multi-head latent attention (DeepSeek), encoders, vision towers, and
vocabulary padding, which a framework may add (give the padded `vocab` if it does).
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from commwall.rules import divides, flag, multiple, nonnegative, positive, whole
from commwall.units import Bytes, Flop

__all__ = ["Model"]

_SIZES = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq")
_FLAGS = ("gated_mlp", "tied_embeddings", "biases", "qkv_bias", "learned_positions",
          "dropout")  # fmt: skip


class _Derived(int):
    """A size that follows from the others, and again after `dataclasses.replace`."""


@dataclass(frozen=True)
class Model:
    r"""A decoder-only transformer, dense or mixture-of-experts.

    >>> tiny = Model(2, 8, 2, 2, 32, 100, 16, gated_mlp=False, tied_embeddings=True)
    >>> tiny.params      # 2 * (4*8*8 + 2*8*32 + 2*8) + 100*8 + 8
    2376
    """

    layers: int  # L
    hidden: int  # h
    heads: int  # a, query heads
    kv_heads: int  # key and value heads; equal to heads without GQA
    ffn: int  # width of the feed-forward layer
    vocab: int  # v
    seq: int  # s, tokens in a training sequence
    _: KW_ONLY
    gated_mlp: bool  # SwiGLU: three matrices instead of two
    tied_embeddings: bool  # input and output embedding are one matrix
    head_dim: int | None = None  # None: hidden / heads
    experts: int = 1  # routed experts in each MoE layer
    shared_experts: int = 0  # experts that every token visits
    top_k: int = 1  # routed experts that one token visits
    moe_ffn: int | None = None  # width of one expert; None: ffn
    dense_layers: int | None = None  # layers without experts; None: all, or 0 if MoE
    biases: bool = False  # on every matrix and norm (GPT-2, GPT-3)
    qkv_bias: bool = False  # on the query, key and value matrices only (Qwen)
    learned_positions: bool = False
    dropout: bool = False  # masks are kept for the backward pass
    scored: float = 1.0  # share of positions projected onto the vocabulary
    name: str = "unnamed"
    source: str = ""  # bibliography key

    def __post_init__(self):
        for field in _SIZES:
            self._set(field, whole(field, getattr(self, field)))
        for field in _FLAGS:
            flag(field, getattr(self, field))
        if nonnegative("scored", self.scored) > 1:
            raise ValueError(
                f"scored={self.scored!r} must be at most 1; nearest legal value: 1"
            )
        multiple("heads", self.heads, f"kv_heads={self.kv_heads}", self.kv_heads)
        if not self._given("head_dim"):
            divides("heads", self.heads, "hidden", self.hidden)
        self._fill("head_dim", self.hidden // self.heads)
        self._check_experts()
        self._check_layers()

    def _set(self, field: str, value: int) -> None:
        object.__setattr__(self, field, value)

    def _given(self, field: str) -> bool:
        value = getattr(self, field)
        return not (value is None or isinstance(value, _Derived))

    def _fill(self, field: str, default: int, minimum: int = 1) -> None:
        if self._given(field):
            self._set(field, whole(field, getattr(self, field), minimum))
        else:
            self._set(field, _Derived(default))

    def _check_experts(self):
        for field, minimum in (("experts", 1), ("shared_experts", 0), ("top_k", 1)):
            self._set(field, whole(field, getattr(self, field), minimum))
        if self.top_k > self.experts:
            raise ValueError(
                f"top_k={self.top_k} must be at most experts={self.experts}; "
                f"nearest legal value: {self.experts}"
            )
        self._fill("moe_ffn", self.ffn)

    def _check_layers(self):
        self._fill("dense_layers", self.layers if self.experts == 1 else 0, minimum=0)
        if self.dense_layers > self.layers:
            raise ValueError(
                f"dense_layers={self.dense_layers} must be at most "
                f"layers={self.layers}; nearest legal value: {self.layers}"
            )

    @cached_property
    def moe_layers(self) -> int:
        """Layers whose feed-forward part is a set of experts."""
        return self.layers - self.dense_layers

    @cached_property
    def attention_matmul(self) -> int:
        """Weights of the query, key, value and output matrices of one layer."""
        return 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)

    def mlp_matmul(self, width: int) -> int:
        """Weights of one feed-forward block of this width: two matrices, or three."""
        return (3 if self.gated_mlp else 2) * self.hidden * width

    @cached_property
    def attention_params(self) -> int:
        """Parameters of one layer's attention, with its biases."""
        qkv = self.head_dim * (self.heads + 2 * self.kv_heads)
        bias = (qkv if self.biases or self.qkv_bias else 0) + (
            self.hidden if self.biases else 0
        )
        return self.attention_matmul + bias

    def mlp_params(self, width: int) -> int:
        """Parameters of one feed-forward block of this width, with its biases."""
        inner = width * (2 if self.gated_mlp else 1)
        return self.mlp_matmul(width) + (inner + self.hidden if self.biases else 0)

    @cached_property
    def norm_params(self) -> int:
        """Parameters of one norm: a gain, and an offset where there are biases."""
        return self.hidden * (2 if self.biases else 1)

    @cached_property
    def router_params(self) -> int:
        """Parameters of one MoE layer's router."""
        return self.hidden * self.experts

    @cached_property
    def expert_params(self) -> int:
        """Parameters of all routed experts of one MoE layer."""
        return self.experts * self.mlp_params(self.moe_ffn)

    @cached_property
    def shared_expert_params(self) -> int:
        """Parameters of the experts of one MoE layer that every token visits."""
        return self.shared_experts * self.mlp_params(self.moe_ffn)

    @cached_property
    def embedding_params(self) -> int:
        """Parameters of the input embedding and of learned positions."""
        positions = self.seq * self.hidden if self.learned_positions else 0
        return self.vocab * self.hidden + positions

    @cached_property
    def head_params(self) -> int:
        """Parameters of the output projection, where it is a matrix of its own."""
        return 0 if self.tied_embeddings else self.vocab * self.hidden

    @cached_property
    def params(self) -> int:
        """All parameters, exact."""
        every_layer = self.attention_params + 2 * self.norm_params
        moe = self.router_params + self.expert_params + self.shared_expert_params
        return (
            self.layers * every_layer
            + self.dense_layers * self.mlp_params(self.ffn)
            + self.moe_layers * moe
            + self.norm_params
            + self.embedding_params
            + self.head_params
        )

    @cached_property
    def active_params(self) -> int:
        """Parameters that one token meets: all, less the experts it does not visit."""
        idle = (self.experts - self.top_k) * self.mlp_params(self.moe_ffn)
        return self.params - self.moe_layers * idle

    @cached_property
    def matmul_params(self) -> int:
        """Weights that multiply one token: no norm, no bias, no embedding look-up.

        The projection onto the vocabulary counts by the share of positions `scored`:
        all in a language model, masked ones in BERT, none in its fine-tuning.
        """
        visited = self.top_k + self.shared_experts
        moe = self.router_params + visited * self.mlp_matmul(self.moe_ffn)
        return (
            self.layers * self.attention_matmul
            + self.dense_layers * self.mlp_matmul(self.ffn)
            + self.moe_layers * moe
            + round(self.scored * self.vocab * self.hidden)
        )

    @cached_property
    def _attention_products(self) -> int:
        return self.layers * self.seq * self.heads * self.head_dim

    @cached_property
    def flop_per_token(self) -> Flop:
        r"""Model FLOP of one token, forward and backward, causal attention.

        $$6 N_\text{matmul} + 6 L s a d$$

        A weight costs two FLOP forward and four backward. A token meets on average
        half the sequence, which halves attention's $12 L s a d$. What activation
        recomputation adds belongs to the plan. narayanan2021, korthikanti2022.
        """
        return 6 * self.matmul_params + 6 * self._attention_products

    @cached_property
    def flop_per_token_full_attention(self) -> Flop:
        """The same, counting the masked half of attention, as many papers do."""
        return 6 * self.matmul_params + 12 * self._attention_products

    def activation(self, sequences: int, bytes_per_value: float = 2) -> Bytes:
        r"""Bytes of one activation tensor, $b \times s \times h$ values."""
        whole("sequences", sequences)
        positive("bytes_per_value", bytes_per_value)
        return sequences * self.seq * self.hidden * bytes_per_value
