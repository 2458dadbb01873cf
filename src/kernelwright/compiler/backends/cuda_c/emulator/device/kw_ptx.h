// Inline PTX as kernels write it: asynchronous copies, ldmatrix, mma.sync, plain loads and stores, a few conversions.
// Included by runtime.cpp. In: the text with %0 … and its operands. What is not known here ends the launch with its text.
#pragma once
#include <string>

namespace {

// One instruction: its opcode and operands, each `%1`, a number, `[%1 + 16]` or `{%1, %2}`
struct PtxItem { char kind; std::vector<int> ids; uint64_t number; };

struct Ptx {
  KwOperand* operands;
  int count, line;
  std::string opcode;
  bool guarded = false;  // @p
  std::vector<PtxItem> items;

  bool is(const char* start) const { return opcode.compare(0, strlen(start), start) == 0; }
  bool has(const char* word) const { return opcode.find(word) != std::string::npos; }
  uint64_t value(int k) const {
    uint64_t v = 0;
    if (k >= 0 && k < count) memcpy(&v, operands[k].at, std::min(operands[k].bytes, 8));
    return v;
  }
  uint64_t item(size_t k) const {  // a number, an operand's value, or an address
    if (k >= items.size()) return 0;
    return items[k].ids.empty() ? items[k].number : value(items[k].ids[0]) + (items[k].kind == '[' ? items[k].number : 0);
  }
  float real(size_t k) const { const uint32_t bits = uint32_t(item(k)); return kw::bits_float(bits); }
  void set(int k, const void* from, int bytes) const { if (k < count) memcpy(operands[k].at, from, std::min(bytes, operands[k].bytes)); }
  // A shared address is an offset, so that it fits into 32 bits
  void* shared(uint64_t address) const { return self()->worker->shared + (address & 0xffffff); }
};

Ptx ptx_parse(const std::string& text, KwOperand* operands, int count, int line) {
  Ptx p{operands, count, line, "", false, {}};
  size_t at = text.find_first_not_of(" \t\n\r{");
  if (at == std::string::npos) return p;
  if (text[at] == '@') {
    p.guarded = true;
    at = text.find_first_not_of(" \t", text.find_first_of(" \t", at));
    if (at == std::string::npos) return p;
  }
  const size_t end = std::min(text.find_first_of(" \t\n{", at), text.size());
  p.opcode = text.substr(at, end - at);
  for (at = end; at < text.size();) {
    const char c = text[at];
    if (c == '{' || c == '[') {
      const size_t close = std::min(text.find(c == '{' ? '}' : ']', at), text.size());
      PtxItem item{c, {}, 0};
      for (size_t k = at; k < close; ++k) {
        if (text[k] == '%' && isdigit(text[k + 1])) { item.ids.push_back(atoi(&text[k + 1])); while (isdigit(text[k + 1])) ++k; }
        else if (text[k] == '+') item.number = strtoull(&text[k + 1], nullptr, 0);
      }
      p.items.push_back(item);
      at = close + 1;
    } else if (c == '%' && at + 1 < text.size() && isdigit(text[at + 1])) {
      p.items.push_back({'%', {atoi(&text[at + 1])}, 0});
      at = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
    } else if (isdigit(c)) {
      p.items.push_back({'#', {}, strtoull(&text[at], nullptr, 0)});
      at = std::min(text.find_first_of(", \t\n", at), text.size());
    } else if (isalpha(c) || c == '%') {  // a register of the text's own
      p.items.push_back({'r', {}, 0});
      at = std::min(text.find_first_of(", \t\n", at), text.size());
    } else {
      ++at;
    }
  }
  return p;
}

bool ptx_copies(const Ptx& p, bool allowed) {
  if (p.is("cp.async.commit_group")) return kw_copy_commit(), true;
  if (p.is("cp.async.wait_all")) return kw_copy_wait(0), true;
  if (p.is("cp.async.wait_group")) return kw_copy_wait(int(p.item(0))), true;
  if (!p.is("cp.async.c") || p.items.size() < 3) return false;
  if (!allowed) return true;
  const size_t bytes = p.item(2), given = p.items.size() > 3 && p.items[3].kind != 'r' ? std::min<size_t>(p.item(3), bytes) : bytes;
  kw_copy_async(p.shared(p.item(0)), (const void*)p.item(1), bytes, bytes - given);
  return true;
}

bool ptx_ldmatrix(const Ptx& p, uintptr_t pc) {
  if (!p.is("ldmatrix.sync.aligned.m8n8.x") || p.items.size() != 2) return false;
  const int matrices = int(p.items[0].ids.size()), lane = kw_lane();
  const bool turned = p.has(".trans");
  void* row = p.shared(p.item(1));
  unsigned char mine[16] = {};
  if (lane < 8 * matrices) {
    access(row, 16, 0, pc);
    memcpy(mine, row, 16);
  }
  const KwExchange e = kw_exchange(p.line, ~0u, mine, 16);
  for (int k = 0; k < matrices; ++k) {
    uint16_t pair[2];
    for (int h = 0; h < 2; ++h) {
      const int r = lane / 4, c = lane % 4 * 2 + h;
      memcpy(&pair[h], turned ? e.slots[8 * k + c] + 2 * r : e.slots[8 * k + r] + 2 * c, 2);
    }
    p.set(p.items[0].ids[k], pair, 4);
  }
  return true;
}

float narrow(uint16_t bits, bool bfloat) { return bfloat ? kw::bfloat_float(bits) : kw::half_float(bits); }

// mma.sync m16n8k16 and m16n8k8 with half or bfloat16 operands, m16n8k8 and m16n8k4 with tf32; accumulators in float
bool ptx_mma(const Ptx& p) {
  if (!p.is("mma.sync.aligned.m16n8k") || !p.has(".row.col.f32.") || p.items.size() != 4) return false;
  const int depth = atoi(p.opcode.c_str() + strlen("mma.sync.aligned.m16n8k")), lane = kw_lane();
  const bool tf32 = p.has(".tf32."), bfloat = p.has(".bf16.");
  const std::vector<int>&d = p.items[0].ids, &a = p.items[1].ids, &b = p.items[2].ids, &c = p.items[3].ids;
  if (d.size() != 4 || c.size() != 4 || a.size() > 4 || b.size() > 2) return false;
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

// ld and st of global or shared memory, one, two or four elements
bool ptx_memory(const Ptx& p, uintptr_t pc) {
  const bool loads = p.is("ld."), stores = p.is("st.");
  if ((!loads && !stores) || p.items.size() != 2) return false;
  const PtxItem& values = p.items[loads ? 0 : 1];
  const size_t width = p.opcode.find_last_not_of("0123456789");
  const int bytes = atoi(p.opcode.c_str() + width + 1) / 8;
  if (bytes == 0) return false;
  const uint64_t address = p.item(loads ? 1 : 0);
  char* at = p.has(".shared") ? (char*)p.shared(address) : (char*)address;
  access(at, bytes * values.ids.size(), stores, pc);
  for (size_t k = 0; k < values.ids.size(); ++k) {
    if (loads) p.set(values.ids[k], at + k * bytes, bytes);
    else if (values.ids[k] < p.count) memcpy(at + k * bytes, p.operands[values.ids[k]].at, bytes);
  }
  return true;
}

bool ptx_numbers(const Ptx& p, const char* text) {
  if (p.is("mov") && strstr(text, "laneid")) { const int lane = kw_lane(); p.set(0, &lane, 4); return true; }
  const float x = p.real(1), y = p.real(2);
  float result;
  if (p.is("ex2.approx")) result = exp2f(x);
  else if (p.is("lg2.approx")) result = log2f(x);
  else if (p.is("rcp.approx")) result = 1.0f / x;
  else if (p.is("rsqrt.approx")) result = 1.0f / sqrtf(x);
  else if (p.is("sqrt.approx")) result = sqrtf(x);
  else if (p.is("tanh.approx.f32")) result = tanhf(x);
  else if (p.is("cvt.rna.tf32.f32")) result = kw::bits_float((kw::float_bits(x) + 0x1000u) & 0xffffe000u);
  else if (p.is("max.") && p.has("f32") && p.items.size() == 3) result = fmaxf(x, y);
  else if (p.is("min.") && p.has("f32") && p.items.size() == 3) result = fminf(x, y);
  else return false;
  if (p.items.empty() || p.items[0].ids.empty()) return false;
  p.set(p.items[0].ids[0], &result, 4);
  return true;
}

}  // namespace

extern "C" void kw_ptx(int line, const char* text, KwOperand* operands, int count) {
  const uintptr_t pc = (uintptr_t)__builtin_return_address(0);
  bool allowed = true;  // what the predicate says
  for (const char* start = text; *start;) {
    const char* stop = strchr(start, ';');
    const std::string one(start, stop ? stop : start + strlen(start));
    start = stop ? stop + 1 : start + strlen(start);
    const Ptx p = ptx_parse(one, operands, count, line);
    if (p.opcode.empty() || p.is(".reg") || p.is("}") || p.is("//")) continue;
    if (p.is("setp.ne") && p.items.size() == 3) { allowed = uint32_t(p.item(1)) != uint32_t(p.item(2)); continue; }
    if (ptx_copies(p, allowed || !p.guarded) || ptx_ldmatrix(p, pc) || ptx_mma(p)) continue;
    if (p.guarded && !allowed) continue;
    if (ptx_memory(p, pc) || ptx_numbers(p, text)) continue;
    if (p.is("prefetch") || p.is("membar") || p.is("fence") || p.is("griddepcontrol") || p.is("discard")) continue;
    if (p.is("bar.sync") || p.is("barrier.sync")) { kw_sync(line, 0, 0); continue; }
    char what[300];
    snprintf(what, sizeof what, "uses PTX that the emulator does not read: %.200s", one.c_str());
    kw_fail(what, line);
  }
}
