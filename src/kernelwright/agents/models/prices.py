"""What tokens cost, from the price list that comes with pydantic-ai (genai-prices): looked up offline, never fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PriceList:
    """The prices of one model: under the provider's name, or under the server's address where only that is known."""

    model: str
    provider: str | None = None
    url: str | None = None

    def __call__(self, tokens_in: int, tokens_out: int) -> float | None:
        from genai_prices import Usage

        return self.of(Usage(input_tokens=tokens_in, output_tokens=tokens_out))

    def of(self, usage: Any) -> float | None:
        """Dollars for a usage as the server reported it (with cached tokens, where it told); None where there is no price."""
        from genai_prices import calc_price

        where = {"provider_id": self.provider} if self.provider else {"provider_api_url": self.url}
        try:
            return float(calc_price(usage, self.model, **where).total_price)
        except LookupError:
            return None
