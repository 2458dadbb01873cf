// Inline PTX as kernels write it: asynchronous copies, ldmatrix, mma.sync, plain loads and stores, a few conversions.
// Included by runtime.cpp. In: the text with %0 … and its operands. What is not known here ends the launch with its text.
#pragma once
#include <regex>
#include <string>

namespace {

struct Ptx {
  const char* text;
  KwOperand* operands;
  int count, line;

  bool has(const char* word) const { return strstr(text, word) != nullptr; }
  uint64_t number(const std::string& s) const { return s[0] == '%' ? value(atoi(s.c_str() + 1)) : strtoull(s.c_str(), nullptr, 0); }
  uint64_t value(int k) const {
    uint64_t v = 0;
    if (k >= 0 && k < count) memcpy(&v, operands[k].at, std::min(operands[k].bytes, 8));
    return v;
  }
  void set(int k, const void* from, int bytes) const { if (k < count) memcpy(operands[k].at, from, std::min(bytes, operands[k].bytes)); }
  // A shared address is an offset, so that it fits into 32 bits
  void* shared(uint64_t address) const { return self()->worker->shared + (address & 0xffffff); }
  std::vector<int> list(const std::string& braces) const {
    std::vector<int> found;
    for (const char* p = braces.c_str(); (p = strchr(p, '%')); ++p) found.push_back(atoi(p + 1));
    return found;
  }
};

bool ptx_copies(const Ptx& p, uintptr_t pc) {
  if (p.has("cp.async.commit_group")) return kw_copy_commit(), true;
  if (p.has("cp.async.wait_all")) return kw_copy_wait(0), true;
  std::cmatch m;
  if (std::regex_search(p.text, m, std::regex("cp\\.async\\.wait_group\\s+(%?\\d+)"))) return kw_copy_wait(int(p.number(m[1]))), true;
  if (!std::regex_search(p.text, m, std::regex("cp\\.async\\.c[ag]\\S*\\s+\\[(%\\d+)\\]\\s*,\\s*\\[(%\\d+)\\]\\s*,\\s*(%?\\d+)(?:\\s*,\\s*(%?\\d+))?"))) return false;
  std::cmatch predicate;
  if (p.has("@") && std::regex_search(p.text, predicate, std::regex("setp\\.ne\\S*\\s+\\w+\\s*,\\s*(%\\d+)")) && uint32_t(p.number(predicate[1])) == 0) return true;
  const size_t bytes = p.number(m[3]), given = m[4].matched ? std::min<size_t>(p.number(m[4]), bytes) : bytes;
  (void)pc;
  kw_copy_async(p.shared(p.number(m[1])), (const void*)p.number(m[2]), bytes, bytes - given);
  return true;
}

bool ptx_ldmatrix(const Ptx& p, uintptr_t pc) {
  std::cmatch m;
  if (!std::regex_search(p.text, m, std::regex("ldmatrix\\.sync\\.aligned\\.m8n8\\.x([124])(\\.trans)?\\S*\\s+\\{([^}]*)\\}\\s*,\\s*\\[(%\\d+)\\]"))) return false;
  const int matrices = atoi(m[1].str().c_str()), lane = kw_lane();
  void* row = p.shared(p.number(m[4]));
  if (lane < 8 * matrices) access(row, 16, 0, pc);
  unsigned char mine[16] = {};
  if (lane < 8 * matrices) memcpy(mine, row, 16);
  const KwExchange e = kw_exchange(p.line, ~0u, mine, 16);
  const std::vector<int> out = p.list(m[3]);
  for (int k = 0; k < matrices; ++k) {
    uint16_t pair[2];
    for (int h = 0; h < 2; ++h) {
      const int r = lane / 4, c = lane % 4 * 2 + h;
      memcpy(&pair[h], m[2].matched ? e.slots[8 * k + c] + 2 * r : e.slots[8 * k + r] + 2 * c, 2);
    }
    p.set(out[k], pair, 4);
  }
  return true;
}

float narrow(uint16_t bits, bool bfloat) { return bfloat ? kw::bfloat_float(bits) : kw::half_float(bits); }

// mma.sync m16n8k16 and m16n8k8 with half or bfloat16 operands, m16n8k8 and m16n8k4 with tf32; accumulators in float
bool ptx_mma(const Ptx& p) {
  std::cmatch m;
  if (!std::regex_search(p.text, m, std::regex("mma\\.sync\\.aligned\\.m16n8k(\\d+)\\.row\\.col\\.f32\\.(\\w+)\\.\\w+\\.f32\\s*\\{([^}]*)\\}\\s*,\\s*\\{([^}]*)\\}\\s*,\\s*\\{([^}]*)\\}\\s*,\\s*\\{([^}]*)\\}"))) return false;
  const int depth = atoi(m[1].str().c_str()), lane = kw_lane();
  const bool tf32 = m[2] == "tf32", bfloat = m[2] == "bf16";
  const std::vector<int> d = p.list(m[3]), a = p.list(m[4]), b = p.list(m[5]), c = p.list(m[6]);
  uint32_t mine[8] = {};
  for (size_t k = 0; k < a.size() && k < 4; ++k) mine[k] = uint32_t(p.value(a[k]));
  for (size_t k = 0; k < b.size() && k < 4; ++k) mine[4 + k] = uint32_t(p.value(b[k]));
  const KwExchange e = kw_exchange(p.line, ~0u, mine, sizeof mine);
  float left[16][16], right[16][8];
  for (int l = 0; l < 32; ++l) {
    uint32_t words[8];
    memcpy(words, e.slots[l], sizeof words);
    const int g = l / 4, t = l % 4;
    for (int k = 0; k < int(a.size()); ++k) {
      if (tf32) left[g + 8 * (k & 1)][t + 4 * (k >> 1)] = kw::bits_float(words[k] & 0xffffe000u);
      else for (int h = 0; h < 2; ++h) left[g + 8 * (k & 1)][2 * t + h + 8 * (k >> 1)] = narrow(uint16_t(words[k] >> 16 * h), bfloat);
    }
    for (int k = 0; k < int(b.size()); ++k) {
      if (tf32) right[t + 4 * k][g] = kw::bits_float(words[4 + k] & 0xffffe000u);
      else for (int h = 0; h < 2; ++h) right[2 * t + h + 8 * k][g] = narrow(uint16_t(words[4 + k] >> 16 * h), bfloat);
    }
  }
  for (int k = 0; k < 4; ++k) {
    const int r = lane / 4 + 8 * (k >> 1), col = lane % 4 * 2 + (k & 1);
    const uint64_t bits = p.value(c[k]);
    float start;
    memcpy(&start, &bits, 4);
    double sum = start;
    for (int q = 0; q < depth; ++q) sum += double(left[r][q]) * double(right[q][col]);
    const float result = float(sum);
    p.set(d[k], &result, 4);
  }
  return true;
}

bool ptx_memory(const Ptx& p, uintptr_t pc) {
  std::cmatch m;
  if (std::regex_search(p.text, m, std::regex("ld\\.(global|shared|volatile)[\\w.:]*?(?:\\.v([24]))?\\.([bfus])(8|16|32|64)\\s+\\{?([^}\\[]*)\\}?\\s*,\\s*\\[(%\\d+)(?:\\s*\\+\\s*(\\d+))?\\]"))) {
    const int n = m[2].matched ? atoi(m[2].str().c_str()) : 1, bytes = atoi(m[4].str().c_str()) / 8;
    const uint64_t address = p.number(m[6]) + (m[7].matched ? strtoull(m[7].str().c_str(), nullptr, 0) : 0);
    const char* from = m[1] == "shared" ? (const char*)p.shared(address) : (const char*)address;
    access(from, size_t(n * bytes), 0, pc);
    const std::vector<int> out = p.list(m[5]);
    for (int k = 0; k < n && k < int(out.size()); ++k) p.set(out[k], from + k * bytes, bytes);
    return true;
  }
  if (std::regex_search(p.text, m, std::regex("st\\.(global|shared|volatile)[\\w.:]*?(?:\\.v([24]))?\\.([bfus])(8|16|32|64)\\s+\\[(%\\d+)(?:\\s*\\+\\s*(\\d+))?\\]\\s*,\\s*\\{?([^};]*)\\}?"))) {
    const int n = m[2].matched ? atoi(m[2].str().c_str()) : 1, bytes = atoi(m[4].str().c_str()) / 8;
    const uint64_t address = p.number(m[5]) + (m[6].matched ? strtoull(m[6].str().c_str(), nullptr, 0) : 0);
    char* to = m[1] == "shared" ? (char*)p.shared(address) : (char*)address;
    access(to, size_t(n * bytes), 1, pc);
    const std::vector<int> in = p.list(m[7]);
    for (int k = 0; k < n && k < int(in.size()); ++k) memcpy(to + k * bytes, p.operands[in[k]].at, bytes);
    return true;
  }
  return false;
}

bool ptx_numbers(const Ptx& p) {
  const uint64_t one = p.value(1), two = p.value(2);
  float x, y;
  memcpy(&x, &one, 4);
  memcpy(&y, &two, 4);
  float result;
  if (p.has("%%laneid")) { const int lane = kw_lane(); p.set(0, &lane, 4); return true; }
  if (p.has("ex2.approx")) result = exp2f(x);
  else if (p.has("lg2.approx")) result = log2f(x);
  else if (p.has("rcp.approx")) result = 1.0f / x;
  else if (p.has("rsqrt.approx")) result = 1.0f / sqrtf(x);
  else if (p.has("sqrt.approx")) result = sqrtf(x);
  else if (p.has("tanh.approx.f32")) result = tanhf(x);
  else if (p.has("cvt.rna.tf32.f32")) result = kw::bits_float((kw::float_bits(x) + 0x1000u) & 0xffffe000u);
  else if (p.has("max.f32") && p.count == 3) result = fmaxf(x, y);
  else if (p.has("min.f32") && p.count == 3) result = fminf(x, y);
  else return false;
  p.set(0, &result, 4);
  return true;
}

}  // namespace

extern "C" void kw_ptx(int line, const char* text, KwOperand* operands, int count) {
  const uintptr_t pc = (uintptr_t)__builtin_return_address(0);
  const Ptx p{text, operands, count, line};
  if (ptx_copies(p, pc) || ptx_ldmatrix(p, pc) || ptx_mma(p) || ptx_memory(p, pc) || ptx_numbers(p)) return;
  if (p.has("prefetch") || p.has("membar") || p.has("fence.") || p.has("griddepcontrol") || p.has("discard")) return;
  if (p.has("bar.sync") || p.has("barrier.sync")) { kw_sync(line, 0, 0); return; }
  char what[300];
  snprintf(what, sizeof what, "uses PTX that the emulator does not read: %.200s", text);
  kw_fail(what, line);
}
