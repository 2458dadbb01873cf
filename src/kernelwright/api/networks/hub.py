# mypy: disable-error-code="misc, no-any-return, arg-type"
"""Architectures of the `transformers` package (extra `networks`): configuration objects and random weights, nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

WORDS = 4096
PROMPT = 100
"""Tokens that a cache holds before the step that is timed."""


class Only(nn.Module):
    """A model of `transformers` with tensors in and one tensor out. A `cache` is
    changed in place by each call; its tensors are the last inputs."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], result: str, cache: Any = None, **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.result, self.cache, self.fixed = model, names, result, cache, fixed

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        count = len(self.names)
        given = dict(zip(self.names, inputs[:count], strict=True)) | self.fixed
        if self.cache is not None:
            for place, layer in enumerate(self.cache.layers):
                layer.keys, layer.values = inputs[count + 2 * place : count + 2 * place + 2]
                layer.cumulative_length.fill_(PROMPT)  # back to where the prompt ended: each call does the same
            given |= {"past_key_values": self.cache, "use_cache": True}
        found: torch.Tensor = getattr(self.model(**given), self.result)
        return found


def _words(batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, WORDS, (batch, length))


def bert(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """An encoder of text with its mask."""
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=WORDS, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
    model = Only(BertModel(config), ("input_ids", "attention_mask"), "last_hidden_state")
    return model, (_words(batch, 128), torch.ones(batch, 128, dtype=torch.long))


def gpt2(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """A prefill of a decoder."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=WORDS, n_embd=256, n_layer=4, n_head=4, n_positions=256)
    return Only(GPT2LMHeadModel(config), ("input_ids",), "logits", use_cache=False), (_words(batch, 128),)


def _decoding(model: nn.Module, config: Any, batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """One token against a static cache that already holds a hundred."""
    from transformers import StaticCache

    cache = StaticCache(config=config, max_cache_len=256)
    with torch.no_grad():
        model(input_ids=_words(batch, PROMPT), past_key_values=cache, use_cache=True)
    step = Only(model, ("input_ids", "position_ids"), "logits", cache)
    held = [t for layer in cache.layers for t in (layer.keys, layer.values)]
    return step, (_words(batch, 1), torch.full((batch, 1), PROMPT), *held)


def llama(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """Llama's prefill: rotary positions, grouped queries, gated SiLU."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
    )
    return Only(LlamaForCausalLM(config), ("input_ids",), "logits", use_cache=False), (_words(batch, 64),)


def qwen3(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """Qwen's prefill: norms of queries and keys."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=WORDS,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
    )
    return Only(Qwen3ForCausalLM(config), ("input_ids",), "logits", use_cache=False), (_words(batch, 64),)


def llama_decode(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """Llama's decoding step with a static cache."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
    )
    return _decoding(LlamaForCausalLM(config).eval(), config, batch)


def t5(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """Encoder and decoder with relative positions."""
    from transformers import T5Config, T5Model

    config = T5Config(
        vocab_size=WORDS, d_model=256, d_kv=64, d_ff=1024, num_layers=3, num_heads=4, decoder_start_token_id=0, use_cache=False
    )
    model = Only(T5Model(config), ("input_ids", "decoder_input_ids"), "last_hidden_state", use_cache=False)
    return model, (_words(batch, 64), _words(batch, 32))


def vit(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """Patches of an image."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768, image_size=128, patch_size=16
    )
    return Only(ViTModel(config, add_pooling_layer=False), ("pixel_values",), "last_hidden_state"), (
        torch.randn(batch, 3, 128, 128),
    )


def clip(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """Text and images, held against each other."""
    from transformers import CLIPConfig, CLIPModel

    text = {
        "vocab_size": WORDS,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "eos_token_id": WORDS - 1,
    }
    image = {
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": 96,
        "patch_size": 16,
    }
    config = CLIPConfig(text_config=text, vision_config=image, projection_dim=128)
    model = Only(CLIPModel(config), ("input_ids", "pixel_values"), "logits_per_image")
    return model, (_words(batch, 32), torch.randn(batch, 3, 96, 96))


def whisper(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """The encoder of sound."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=256, encoder_layers=3, encoder_attention_heads=4, encoder_ffn_dim=1024, max_source_positions=150
    )
    return Only(WhisperEncoder(config), ("input_features",), "last_hidden_state"), (torch.randn(batch, 80, 300),)


def mixtral(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """A decoder whose layers route each token to two of four experts."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=WORDS,
        hidden_size=192,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
    )
    return Only(MixtralForCausalLM(config), ("input_ids",), "logits", use_cache=False), (_words(batch, 64),)


def mamba(batch: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """The selective state without its own kernels, as it runs on a CPU."""
    from transformers import MambaConfig, MambaModel

    config = MambaConfig(vocab_size=WORDS, hidden_size=128, state_size=8, num_hidden_layers=2)
    return Only(MambaModel(config), ("input_ids",), "last_hidden_state", use_cache=False), (_words(batch, 32),)


MAKERS: dict[str, Callable[[int], tuple[nn.Module, tuple[Any, ...]]]] = {
    made.__name__.replace("_", "-"): made
    for made in (bert, gpt2, llama, qwen3, llama_decode, t5, vit, clip, whisper, mixtral, mamba)
}
