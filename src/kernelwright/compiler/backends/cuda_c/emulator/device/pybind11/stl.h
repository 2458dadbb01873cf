#pragma once
#include "../torch/kw_torch.h"
