#pragma once
#include "../../torch/kw_torch.h"
#include <cublas_v2.h>
