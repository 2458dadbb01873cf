// torch's C++ interface in small: what host code of inline CUDA extensions uses. A tensor is a handle to one of Python's; its shape
// and memory are known here, everything that computes is asked of torch itself through one callback, where the judge sees it.
#pragma once
#include <cuda_runtime.h>
#include <cfloat>
#include <climits>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME kw_extension
#endif

extern "C" {
struct KwTensor { int64_t id; void* data; int32_t dtype, dim, host, contiguous; int64_t sizes[16], strides[16]; };
// kind: 0 none, 1 tensor, 2 int, 3 double, 4 bool, 5 text, 6 ints, 7 list, 8 dtype, 9 device
struct KwValue { int32_t kind, count; int64_t i; double d; void* p; };
typedef int (*KwPython)(const char* name, KwValue* arguments, int count, KwValue* result);
}

struct cublasContext;
namespace std {
template <> struct numeric_limits<::__half> {
  static constexpr bool is_specialized = true;
  __host__ __device__ static ::__half infinity() { return ::__float2half(INFINITY); }
  __host__ __device__ static ::__half max() { return ::__float2half(65504.0f); }
  __host__ __device__ static ::__half lowest() { return ::__float2half(-65504.0f); }
  __host__ __device__ static ::__half min() { return ::__float2half(6.103515625e-05f); }
  __host__ __device__ static ::__half epsilon() { return ::__float2half(0.0009765625f); }
};
template <> struct numeric_limits<::__nv_bfloat16> {
  static constexpr bool is_specialized = true;
  __host__ __device__ static ::__nv_bfloat16 infinity() { return ::__float2bfloat16(INFINITY); }
  __host__ __device__ static ::__nv_bfloat16 max() { return ::__float2bfloat16(3.38953138925e+38f); }
  __host__ __device__ static ::__nv_bfloat16 lowest() { return ::__float2bfloat16(-3.38953138925e+38f); }
  __host__ __device__ static ::__nv_bfloat16 min() { return ::__float2bfloat16(1.17549435082e-38f); }
  __host__ __device__ static ::__nv_bfloat16 epsilon() { return ::__float2bfloat16(0.0078125f); }
};
}  // namespace std

namespace c10 {
enum class ScalarType : int8_t { Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, QInt8, QUInt8, QInt32, BFloat16, Undefined };
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
enum class MemoryFormat { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class Layout { Strided };
typedef ::__half Half;
typedef ::__nv_bfloat16 BFloat16;
template <typename T> using optional = std::optional<T>;
using std::nullopt;
using std::nullopt_t;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

struct Error : std::runtime_error { using std::runtime_error::runtime_error; };

struct Device {
  DeviceType type_;
  int index_ = -1;
  Device(DeviceType t, int i = -1) : type_(t), index_(i) {}
  Device(const char* s) : type_(std::strncmp(s, "cuda", 4) ? kCPU : kCUDA) {}
  Device(const std::string& s) : Device(s.c_str()) {}
  bool is_cuda() const { return type_ == kCUDA; }
  bool is_cpu() const { return type_ == kCPU; }
  DeviceType type() const { return type_; }
  int index() const { return is_cuda() ? 0 : -1; }
  bool has_index() const { return is_cuda(); }
  std::string str() const { return is_cuda() ? "cuda:0" : "cpu"; }
  bool operator==(const Device& o) const { return type_ == o.type_; }
  bool operator!=(const Device& o) const { return type_ != o.type_; }
};
inline std::ostream& operator<<(std::ostream& s, const Device& d) { return s << d.str(); }
inline std::ostream& operator<<(std::ostream& s, ScalarType t) { return s << "ScalarType(" << int(t) << ")"; }

template <typename T> struct ArrayRef {
  const T* data_ = nullptr;
  size_t size_ = 0;
  ArrayRef() {}
  ArrayRef(const T* d, size_t n) : data_(d), size_(n) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  ArrayRef(const std::initializer_list<T>& v) : data_(v.begin()), size_(v.size()) {}
  template <size_t N> ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t k) const { return data_[k]; }
  const T& at(size_t k) const { return data_[k]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  ArrayRef slice(size_t from, size_t n) const { return {data_ + from, n}; }
  bool equals(ArrayRef o) const { if (size_ != o.size_) return false; for (size_t k = 0; k < size_; ++k) if (!(data_[k] == o.data_[k])) return false; return true; }
};
template <typename T> inline bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <typename T> inline bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <typename T> inline bool operator==(const std::vector<T>& a, ArrayRef<T> b) { return ArrayRef<T>(a).equals(b); }
template <typename T> inline bool operator==(ArrayRef<T> a, const std::vector<T>& b) { return a.equals(ArrayRef<T>(b)); }
template <typename T> inline std::ostream& operator<<(std::ostream& s, ArrayRef<T> a) {
  s << "[";
  for (size_t k = 0; k < a.size(); ++k) s << (k ? ", " : "") << a[k];
  return s << "]";
}
typedef ArrayRef<int64_t> IntArrayRef;

struct Scalar {
  bool whole = false;
  int64_t i = 0;
  double d = 0;
  Scalar() {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>> Scalar(T v) : whole(std::is_integral<T>::value), i(int64_t(v)), d(double(v)) {}
  template <typename T> T to() const { return whole ? T(i) : T(d); }
  double toDouble() const { return whole ? double(i) : d; }
  float toFloat() const { return float(toDouble()); }
  int64_t toLong() const { return whole ? i : int64_t(d); }
  int toInt() const { return int(toLong()); }
};

struct TensorOptions {
  ScalarType dtype_ = ScalarType::Undefined;
  int device_ = -1;
  TensorOptions() {}
  TensorOptions(ScalarType t) : dtype_(t) {}
  TensorOptions(Device d) : device_(int(d.type_)) {}
  TensorOptions(DeviceType d) : device_(int(d)) {}
  TensorOptions dtype(ScalarType t) const { auto o = *this; o.dtype_ = t; return o; }
  TensorOptions device(Device d, int = -1) const { auto o = *this; o.device_ = int(d.type_); return o; }
  TensorOptions device(DeviceType d, int = -1) const { auto o = *this; o.device_ = int(d); return o; }
  TensorOptions requires_grad(bool = true) const { return *this; }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return Device(device_ == 1 ? kCUDA : kCPU); }
};

template <typename... A> inline std::string str(const A&... a) { std::ostringstream s; (void)std::initializer_list<int>{((s << a), 0)...}; return s.str(); }
}  // namespace c10

namespace kw {
inline KwPython& python() { static KwPython p = nullptr; return p; }
template <typename T> struct TypeOf;
#define KW_TYPE(T, S) template <> struct TypeOf<T> { static constexpr c10::ScalarType value = c10::ScalarType::S; };
KW_TYPE(float, Float) KW_TYPE(double, Double) KW_TYPE(int, Int) KW_TYPE(long, Long) KW_TYPE(long long, Long) KW_TYPE(short, Short)
KW_TYPE(signed char, Char) KW_TYPE(unsigned char, Byte) KW_TYPE(bool, Bool) KW_TYPE(::__half, Half) KW_TYPE(::__nv_bfloat16, BFloat16)
struct Kept;
}  // namespace kw

namespace at {
using namespace c10;
class Tensor;
template <typename T> struct DefaultPtrTraits { typedef T* PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };

template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = int64_t> struct TensorAccessor {
  T* data_; const I* sizes_; const I* strides_;
  __host__ __device__ TensorAccessor(T* d, const I* s, const I* t) : data_(d), sizes_(s), strides_(t) {}
  __host__ __device__ TensorAccessor<T, N - 1, P, I> operator[](I k) const { return {data_ + strides_[0] * k, sizes_ + 1, strides_ + 1}; }
  __host__ __device__ I size(int k) const { return sizes_[k]; }
  __host__ __device__ I stride(int k) const { return strides_[k]; }
  __host__ __device__ T* data() const { return data_; }
};
template <typename T, template <typename> class P, typename I> struct TensorAccessor<T, 1, P, I> {
  T* data_; const I* sizes_; const I* strides_;
  __host__ __device__ TensorAccessor(T* d, const I* s, const I* t) : data_(d), sizes_(s), strides_(t) {}
  __host__ __device__ T& operator[](I k) const { return data_[strides_[0] * k]; }
  __host__ __device__ I size(int k) const { return sizes_[k]; }
  __host__ __device__ I stride(int k) const { return strides_[k]; }
  __host__ __device__ T* data() const { return data_; }
};
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = int64_t> struct GenericPackedTensorAccessor {
  T* data_; I sizes_[N]; I strides_[N];
  __host__ __device__ decltype(auto) operator[](I k) const { return TensorAccessor<T, N, P, I>(data_, sizes_, strides_)[k]; }
  __host__ __device__ I size(int k) const { return sizes_[k]; }
  __host__ __device__ I stride(int k) const { return strides_[k]; }
  __host__ __device__ T* data() const { return data_; }
};
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits> using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits> using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits> using PackedTensorAccessor = PackedTensorAccessor64<T, N, P>;

struct OldType {
  ScalarType scalar; bool cuda;
  bool is_cuda() const { return cuda; }
  ScalarType scalarType() const { return scalar; }
  operator ScalarType() const { return scalar; }
};
}  // namespace at

namespace kw {
// Arguments of a call into Python; keeps what they point to
struct Arguments {
  std::vector<KwValue> values;
  std::vector<std::shared_ptr<void>> kept;
};
inline void add(Arguments& a, const at::Tensor& t);
inline void add(Arguments& a, bool v) { a.values.push_back({4, 0, v, 0, nullptr}); }
inline void add(Arguments& a, c10::ScalarType t) { a.values.push_back({t == c10::ScalarType::Undefined ? 0 : 8, 0, int64_t(t), 0, nullptr}); }
inline void add(Arguments& a, c10::Device d) { a.values.push_back({9, 0, int64_t(d.type_), 0, nullptr}); }
inline void add(Arguments& a, c10::DeviceType d) { a.values.push_back({9, 0, int64_t(d), 0, nullptr}); }
inline void add(Arguments& a, const char* s) { a.values.push_back({5, 0, 0, 0, (void*)s}); }
inline void add(Arguments& a, c10::Scalar s) { a.values.push_back({s.whole ? 2 : 3, 0, s.i, s.d, nullptr}); }
inline void add(Arguments& a, c10::TensorOptions o) { add(a, o.dtype_); a.values.push_back({9, 0, o.device_ == 1, 0, nullptr}); }
inline void add(Arguments&, c10::MemoryFormat) {}
inline void add(Arguments& a, c10::nullopt_t) { a.values.push_back({0, 0, 0, 0, nullptr}); }
template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value && !std::is_same<T, bool>::value>> inline void add(Arguments& a, T v) {
  a.values.push_back({std::is_integral<T>::value ? 2 : 3, 0, int64_t(v), double(v), nullptr});
}
inline void add(Arguments& a, c10::IntArrayRef v) {
  auto copy = std::make_shared<std::vector<int64_t>>(v.vec());
  a.values.push_back({6, int32_t(v.size()), 0, 0, copy->data()});
  a.kept.push_back(copy);
}
inline void add(Arguments& a, const std::vector<int64_t>& v) { add(a, c10::IntArrayRef(v)); }
inline void add(Arguments& a, const std::vector<at::Tensor>& v);
template <typename T> inline void add(Arguments& a, const std::optional<T>& v) { if (v) add(a, *v); else add(a, c10::nullopt); }
KwValue call(const char* name, Arguments& a);
}  // namespace kw

namespace at {
class Tensor {
 public:
  std::shared_ptr<KwTensor> kept;
  Tensor() {}
  explicit Tensor(const KwTensor& k) : kept(std::make_shared<KwTensor>(k)) {}
  bool defined() const { return kept != nullptr; }
  IntArrayRef sizes() const { return {kept->sizes, size_t(kept->dim)}; }
  IntArrayRef strides() const { return {kept->strides, size_t(kept->dim)}; }
  int64_t dim() const { return kept->dim; }
  int64_t ndimension() const { return kept->dim; }
  int64_t size(int64_t k) const { check(k); return kept->sizes[k < 0 ? k + kept->dim : k]; }
  int64_t stride(int64_t k) const { check(k); return kept->strides[k < 0 ? k + kept->dim : k]; }
  int64_t numel() const { int64_t n = 1; for (int k = 0; k < kept->dim; ++k) n *= kept->sizes[k]; return n; }
  ScalarType scalar_type() const { return ScalarType(kept->dtype); }
  ScalarType dtype() const { return ScalarType(kept->dtype); }
  OldType type() const { return {scalar_type(), is_cuda()}; }
  Device device() const { return Device(kept->host ? kCPU : kCUDA); }
  bool is_cuda() const { return !kept->host; }
  bool is_cpu() const { return kept->host; }
  int get_device() const { return kept->host ? -1 : 0; }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return kept->contiguous; }
  MemoryFormat suggest_memory_format() const { return MemoryFormat::Contiguous; }
  bool requires_grad() const { return false; }
  bool is_floating_point() const { auto s = scalar_type(); return s == ScalarType::Half || s == ScalarType::Float || s == ScalarType::Double || s == ScalarType::BFloat16; }
  size_t element_size() const { static const int n[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2}; return n[kept->dtype]; }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return element_size() * numel(); }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  void* data_ptr() const { return kept->data; }
  template <typename T> T* data_ptr() const {
    if (sizeof(T) != element_size()) throw Error(c10::str("expected scalar type of ", sizeof(T), " bytes but the tensor's elements have ", element_size()));
    return (T*)kept->data;
  }
  template <typename T> T* data() const { return data_ptr<T>(); }
  template <typename T> T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <typename T> const T* const_data_ptr() const { return data_ptr<T>(); }
  template <typename T, size_t N> TensorAccessor<T, N> accessor() const { return {data_ptr<T>(), kept->sizes, kept->strides}; }
  template <typename A, typename T, size_t N> A packed() const {
    A a;
    a.data_ = data_ptr<T>();
    if (kept->dim != int(N)) throw Error(c10::str("TensorAccessor expected ", N, " dims but tensor has ", kept->dim));
    for (size_t k = 0; k < N; ++k) a.sizes_[k] = kept->sizes[k], a.strides_[k] = kept->strides[k];
    return a;
  }
  template <typename T, size_t N, template <typename> class P = DefaultPtrTraits> PackedTensorAccessor32<T, N, P> packed_accessor32() const { return packed<PackedTensorAccessor32<T, N, P>, T, N>(); }
  template <typename T, size_t N, template <typename> class P = DefaultPtrTraits> PackedTensorAccessor64<T, N, P> packed_accessor64() const { return packed<PackedTensorAccessor64<T, N, P>, T, N>(); }
  template <typename T, size_t N, template <typename> class P = DefaultPtrTraits> PackedTensorAccessor64<T, N, P> packed_accessor() const { return packed_accessor64<T, N, P>(); }

  template <typename... A> Tensor ask(const char* name, const A&... rest) const;
  template <typename T> T item() const;
  Scalar item() const;
  Tensor to(ScalarType d) const { return ask(".to", d); }
  Tensor to(Device d) const { return ask(".to", d); }
  Tensor to(DeviceType d) const { return ask(".to", d); }
  Tensor to(const TensorOptions& o) const { return ask(".to", o.dtype_); }
  Tensor to(Device, ScalarType d) const { return ask(".to", d); }
  Tensor toType(ScalarType d) const { return ask(".to", d); }
  Tensor view(IntArrayRef s) const { return ask(".view", s); }
  Tensor reshape(IntArrayRef s) const { return ask(".reshape", s); }
  Tensor permute(IntArrayRef s) const { return ask(".permute", s); }
  Tensor expand(IntArrayRef s) const { return ask(".expand", s); }
  Tensor repeat(IntArrayRef s) const { return ask(".repeat", s); }
  Tensor new_empty(IntArrayRef s) const { return ask(".new_empty", s); }
  Tensor new_zeros(IntArrayRef s) const { return ask(".new_zeros", s); }
  Tensor sum(IntArrayRef d, bool keep = false) const { return ask(".sum", d, keep); }
  Tensor mean(IntArrayRef d, bool keep = false) const { return ask(".mean", d, keep); }
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return kept->contiguous ? *this : ask(".contiguous"); }
#define KW_METHODS(F) F(t) F(clone) F(transpose) F(unsqueeze) F(squeeze) F(flatten) F(expand_as) F(view_as) F(reshape_as) F(zero_) F(fill_) F(copy_) F(narrow) F(select) F(slice) \
  F(sum) F(mean) F(max) F(min) F(abs) F(sqrt) F(exp) F(log) F(neg) F(relu) F(sigmoid) F(tanh) F(matmul) F(mm) F(bmm) F(add) F(sub) F(mul) F(div) F(add_) F(mul_) F(sub_) F(div_) \
  F(pow) F(detach) F(cpu) F(cuda) F(index_select) F(type_as) F(argmax) F(argmin) F(softmax) F(clamp) F(clamp_min) F(eq) F(ne) F(lt) F(gt) F(le) F(ge) F(all) F(any) F(cumsum) F(masked_fill) F(to_dense)
#define KW_METHOD(name) template <typename... A> Tensor name(const A&... a) const { return ask("." #name, a...); }
  KW_METHODS(KW_METHOD)
  Tensor operator[](int64_t k) const { return ask(".select", int64_t(0), k); }
  Tensor& operator+=(const Tensor& o) { ask(".add_", o); return *this; }
  Tensor& operator*=(const Tensor& o) { ask(".mul_", o); return *this; }

 private:
  void check(int64_t k) const { if (k >= kept->dim || k < -kept->dim) throw Error(c10::str("Dimension out of range (expected to be in range of [", -kept->dim, ", ", kept->dim - 1, "], but got ", k, ")")); }
};
}  // namespace at

namespace kw {
inline void add(Arguments& a, const at::Tensor& t) {
  if (t.defined()) a.values.push_back({1, 0, t.kept->id, 0, t.kept.get()}); else a.values.push_back({0, 0, 0, 0, nullptr});
}
inline void add(Arguments& a, const std::vector<at::Tensor>& v) {
  auto inner = std::make_shared<std::vector<KwValue>>();
  for (const auto& t : v) inner->push_back({1, 0, t.kept->id, 0, t.kept.get()});
  a.values.push_back({7, int32_t(v.size()), 0, 0, inner->data()});
  a.kept.push_back(inner);
}
inline KwValue call(const char* name, Arguments& a) {
  KwValue result{};
  if (python()(name, a.values.data(), int(a.values.size()), &result)) throw c10::Error(result.p ? (const char*)result.p : name);
  return result;
}
inline at::Tensor tensor_of(const KwValue& v) { return v.kind == 1 ? at::Tensor(*(KwTensor*)v.p) : at::Tensor(); }
template <typename... A> inline at::Tensor function(const char* name, const A&... rest) {
  Arguments a;
  (void)std::initializer_list<int>{(add(a, rest), 0)...};
  return tensor_of(call(name, a));
}
}  // namespace kw

namespace at {
template <typename... A> inline Tensor Tensor::ask(const char* name, const A&... rest) const { return kw::function(name, *this, rest...); }
inline Scalar Tensor::item() const {
  kw::Arguments a;
  kw::add(a, *this);
  const KwValue v = kw::call(".item", a);
  return v.kind == 3 ? Scalar(v.d) : Scalar(v.i);
}
template <typename T> inline T Tensor::item() const { return item().to<T>(); }

#define KW_FACTORIES(F) F(empty) F(zeros) F(ones) F(rand) F(randn)
#define KW_FACTORY(name) inline Tensor name(IntArrayRef s, TensorOptions o = TensorOptions()) { return kw::function(#name, s, o); }
KW_FACTORIES(KW_FACTORY)
inline Tensor full(IntArrayRef s, Scalar v, TensorOptions o = TensorOptions()) { return kw::function("full", s, v, o); }
#define KW_LIKES(F) F(empty_like) F(zeros_like) F(ones_like)
#define KW_LIKE(name)                                                                                          \
  inline Tensor name(const Tensor& t) { return kw::function(#name, t); }                                       \
  inline Tensor name(const Tensor& t, TensorOptions o, std::optional<MemoryFormat> = {}) { return kw::function(#name, t, o.dtype_); }
KW_LIKES(KW_LIKE)
inline Tensor empty_like(const Tensor& t, MemoryFormat) { return empty_like(t); }
inline Tensor full_like(const Tensor& t, Scalar v) { return kw::function("full_like", t, v); }
inline Tensor arange(Scalar n, TensorOptions o = TensorOptions()) { return kw::function("arange", n, o); }
inline Tensor sum(const Tensor& t, IntArrayRef d, bool keep = false) { return kw::function("sum", t, d, keep); }
inline Tensor mean(const Tensor& t, IntArrayRef d, bool keep = false) { return kw::function("mean", t, d, keep); }
#define KW_FUNCTIONS(F) F(cat) F(stack) F(matmul) F(mm) F(bmm) F(addmm) F(relu) F(sigmoid) F(tanh) F(exp) F(log) F(sqrt) F(rsqrt) F(abs) F(sum) F(mean) F(max) F(min) F(softmax) \
  F(add) F(sub) F(mul) F(div) F(where) F(clamp) F(linear) F(conv2d) F(conv3d) F(conv1d) F(max_pool2d) F(transpose) F(square) F(pow) F(argmax) F(cumsum) F(gelu)
#define KW_FREE(name) template <typename T, typename... A> inline Tensor name(const T& t, const A&... a) { return kw::function(#name, t, a...); }
KW_FUNCTIONS(KW_FREE)
inline Tensor cat(const std::vector<Tensor>& v, int64_t dim = 0) { return kw::function("cat", v, dim); }
inline Tensor stack(const std::vector<Tensor>& v, int64_t dim = 0) { return kw::function("stack", v, dim); }
#define KW_OPERATOR(op, name)                                                                        \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.ask(name, b); }             \
  inline Tensor operator op(const Tensor& a, Scalar b) { return a.ask(name, b); }
KW_OPERATOR(+, ".add") KW_OPERATOR(-, ".sub") KW_OPERATOR(*, ".mul") KW_OPERATOR(/, ".div")
inline Tensor operator*(Scalar b, const Tensor& a) { return a.ask(".mul", b); }
inline Tensor operator+(Scalar b, const Tensor& a) { return a.ask(".add", b); }
inline Tensor operator-(const Tensor& a) { return a.ask(".neg"); }
inline Device device_of(const Tensor& t) { return t.device(); }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
typedef std::vector<Tensor> TensorList;

#define KW_CONSTANTS(NS) constexpr auto kFloat = ScalarType::Float, kFloat32 = ScalarType::Float, kDouble = ScalarType::Double, kFloat64 = ScalarType::Double, \
  kHalf = ScalarType::Half, kFloat16 = ScalarType::Half, kBFloat16 = ScalarType::BFloat16, kInt = ScalarType::Int, kInt32 = ScalarType::Int, kLong = ScalarType::Long, \
  kInt64 = ScalarType::Long, kShort = ScalarType::Short, kInt16 = ScalarType::Short, kChar = ScalarType::Char, kInt8 = ScalarType::Char, kByte = ScalarType::Byte, \
  kUInt8 = ScalarType::Byte, kBool = ScalarType::Bool; constexpr auto kStrided = Layout::Strided;
KW_CONSTANTS(at)
template <typename T> struct OpMathType { typedef T Type; };
template <> struct OpMathType<Half> { typedef float Type; };
template <> struct OpMathType<BFloat16> { typedef float Type; };
template <typename T> using opmath_type = typename OpMathType<T>::Type;
template <typename T, bool = true> using acc_type = typename OpMathType<T>::Type;
namespace cuda {
inline ::cublasContext* getCurrentCUDABlasHandle() { return (::cublasContext*)1; }
struct Stream { cudaStream_t stream() const { return nullptr; } operator cudaStream_t() const { return nullptr; } void synchronize() const {} };
typedef Stream CUDAStream;
inline Stream getCurrentCUDAStream(int = -1) { return {}; }
inline Stream getDefaultCUDAStream(int = -1) { return {}; }
inline Stream getStreamFromPool(bool = false, int = -1) { return {}; }
inline cudaDeviceProp* getCurrentDeviceProperties() { static cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); return &p; }
inline cudaDeviceProp* getDeviceProperties(int = 0) { return getCurrentDeviceProperties(); }
struct CUDAGuard { template <typename... A> explicit CUDAGuard(const A&...) {} void set_index(int) {} };
struct OptionalCUDAGuard { template <typename... A> explicit OptionalCUDAGuard(const A&...) {} };
struct CUDAStreamGuard { template <typename... A> explicit CUDAStreamGuard(const A&...) {} };
template <typename T> inline T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
}  // namespace cuda
template <typename T> __host__ __device__ inline T ceil_div(T a, T b) { return (a + b - 1) / b; }
}  // namespace at

namespace c10 { namespace cuda { using namespace at::cuda; } using at::Tensor; }
namespace torch {
using namespace at;
namespace nn { namespace functional {} }
namespace cuda { using namespace at::cuda; inline void synchronize(int = -1) {} inline bool is_available() { return true; } inline int device_count() { return 1; } }
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType d) { return TensorOptions(d); }
using c10::optional;
struct NoGradGuard {};
}
namespace at { inline TensorOptions device(Device d) { return TensorOptions(d); } inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); } }

#define TORCH_CHECK(cond, ...) do { if (!(cond)) throw ::c10::Error(::c10::str("", ##__VA_ARGS__)); } while (0)
#define TORCH_CHECK_EQ(a, b, ...) TORCH_CHECK((a) == (b), #a " == " #b)
#define TORCH_CHECK_NE(a, b, ...) TORCH_CHECK((a) != (b), #a " != " #b)
#define TORCH_CHECK_GT(a, b, ...) TORCH_CHECK((a) > (b), #a " > " #b)
#define TORCH_CHECK_GE(a, b, ...) TORCH_CHECK((a) >= (b), #a " >= " #b)
#define TORCH_CHECK_LT(a, b, ...) TORCH_CHECK((a) < (b), #a " < " #b)
#define TORCH_CHECK_LE(a, b, ...) TORCH_CHECK((a) <= (b), #a " <= " #b)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define TORCH_WARN(...)
#define AT_ERROR(...) TORCH_CHECK(false, __VA_ARGS__)
#define C10_CUDA_CHECK(e) do { const cudaError_t kw_e = (e); TORCH_CHECK(kw_e == cudaSuccess, "CUDA error: ", cudaGetErrorString(kw_e)); } while (0)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_LAUNCH_BOUNDS_1(...)
#define C10_LAUNCH_BOUNDS_2(...)
#define TORCH_API
#define GPU_1D_KERNEL_LOOP(i, n) for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
template <typename T> static __device__ inline T gpuAtomicAdd(T* at, T v) { return atomicAdd(at, v); }
template <typename T> static __device__ inline void gpuAtomicAddNoReturn(T* at, T v) { atomicAdd(at, v); }
#define CUDA_KERNEL_LOOP(i, n) for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

#define KW_CASE(S, T, ...) case ::c10::ScalarType::S: { using scalar_t = T; return __VA_ARGS__(); }
#define KW_SWITCH(TYPE, NAME, ...) [&] { switch (::c10::ScalarType(TYPE)) { __VA_ARGS__ default: throw ::c10::Error(::c10::str(NAME, " not implemented for scalar type ", int(::c10::ScalarType(TYPE)))); } }()
#define KW_FLOATS(...) KW_CASE(Float, float, __VA_ARGS__) KW_CASE(Double, double, __VA_ARGS__)
#define KW_INTS(...) KW_CASE(Byte, uint8_t, __VA_ARGS__) KW_CASE(Char, int8_t, __VA_ARGS__) KW_CASE(Short, int16_t, __VA_ARGS__) KW_CASE(Int, int, __VA_ARGS__) KW_CASE(Long, int64_t, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__) KW_CASE(Half, ::c10::Half, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__) KW_INTS(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(T, N, ...) KW_SWITCH(T, N, KW_INTS(__VA_ARGS__))
#define KW_ONE(S, ...) case S: { using scalar_t = typename ::kw::TypeFor<S>::Type; return __VA_ARGS__(); }
#define AT_DISPATCH_SWITCH(T, N, ...) KW_SWITCH(T, N, __VA_ARGS__)
#define AT_DISPATCH_CASE(S, ...) KW_ONE(S, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(S1, T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__) KW_ONE(S1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(S1, S2, T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__) KW_ONE(S1, __VA_ARGS__) KW_ONE(S2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(S1, T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__) KW_INTS(__VA_ARGS__) KW_ONE(S1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(S1, S2, T, N, ...) KW_SWITCH(T, N, KW_FLOATS(__VA_ARGS__) KW_INTS(__VA_ARGS__) KW_ONE(S1, __VA_ARGS__) KW_ONE(S2, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(T, N, ...) KW_SWITCH(T, N, KW_CASE(Half, ::c10::Half, __VA_ARGS__) KW_CASE(BFloat16, ::c10::BFloat16, __VA_ARGS__))
namespace kw {
template <c10::ScalarType S> struct TypeFor;
#define KW_FOR(S, T) template <> struct TypeFor<c10::ScalarType::S> { typedef T Type; };
KW_FOR(Half, ::__half) KW_FOR(BFloat16, ::__nv_bfloat16) KW_FOR(Bool, bool) KW_FOR(Float, float) KW_FOR(Double, double) KW_FOR(Int, int) KW_FOR(Long, int64_t) KW_FOR(Byte, uint8_t) KW_FOR(Char, int8_t) KW_FOR(Short, int16_t)

// ---------------------------------------------------------------- functions that Python calls

template <typename T, typename = void> struct From { static T get(const KwValue& v) { if (v.kind < 2 || v.kind > 4) throw c10::Error("expected a number"); return v.kind == 3 ? T(v.d) : T(v.i); } };
template <> struct From<at::Tensor> { static at::Tensor get(const KwValue& v) { if (v.kind > 1) throw c10::Error("expected a Tensor"); return tensor_of(v); } };
template <> struct From<std::string> { static std::string get(const KwValue& v) { return v.kind == 5 ? (const char*)v.p : ""; } };
template <> struct From<c10::ScalarType> { static c10::ScalarType get(const KwValue& v) { return c10::ScalarType(v.i); } };
template <> struct From<c10::Device> { static c10::Device get(const KwValue& v) { return c10::Device(c10::DeviceType(v.i)); } };
template <> struct From<c10::Scalar> { static c10::Scalar get(const KwValue& v) { return v.kind == 3 ? c10::Scalar(v.d) : c10::Scalar(v.i); } };
template <typename T> struct From<std::optional<T>> { static std::optional<T> get(const KwValue& v) { if (v.kind == 0) return {}; return From<T>::get(v); } };
template <typename T> struct From<std::vector<T>> { static std::vector<T> get(const KwValue& v) {
  std::vector<T> r;
  for (int k = 0; k < v.count; ++k) { if (v.kind == 6) { KwValue one{2, 0, ((int64_t*)v.p)[k], 0, nullptr}; r.push_back(From<T>::get(one)); } else r.push_back(From<T>::get(((KwValue*)v.p)[k])); }
  return r; } };
template <typename T, typename = void> struct To { static void put(Arguments& a, const T& v) { add(a, v); } };
template <typename... T> struct To<std::tuple<T...>> { static void put(Arguments& a, const std::tuple<T...>& v) { std::apply([&](const auto&... e) { (void)std::initializer_list<int>{(add(a, e), 0)...}; }, v); } };
template <> struct To<std::vector<at::Tensor>> { static void put(Arguments& a, const std::vector<at::Tensor>& v) { add(a, v); } };

struct Function { std::string name; std::function<Arguments(const KwValue*, int)> call; std::vector<std::string> names; std::vector<KwValue> defaults; size_t count; };
inline std::vector<Function>& functions() { static std::vector<Function> f; return f; }
struct arg { std::string name; KwValue value{-1, 0, 0, 0, nullptr}; arg(const char* n) : name(n) {}
  template <typename T> arg& operator=(const T& v) { Arguments a; add(a, v); value = a.values[0]; return *this; } };
inline void extra(Function& f, const arg& a) { f.names.push_back(a.name); f.defaults.push_back(a.value); }
template <typename T> inline void extra(Function&, const T&) {}
template <typename R, typename... A, size_t... K> Arguments invoke(const std::function<R(A...)>& f, const KwValue* v, std::index_sequence<K...>) {
  Arguments result;
  if constexpr (std::is_void<R>::value) { f(From<std::decay_t<A>>::get(v[K])...); add(result, c10::nullopt); }
  else To<std::decay_t<R>>::put(result, f(From<std::decay_t<A>>::get(v[K])...));
  return result;
}
template <typename R, typename... A, typename... E> void bind(const char* name, std::function<R(A...)> f, const E&... extras) {
  Function g;
  g.name = name;
  g.count = sizeof...(A);
  g.call = [f](const KwValue* v, int n) {
    if (size_t(n) != sizeof...(A)) throw c10::Error(c10::str("the function takes ", sizeof...(A), " arguments, not ", n));
    return invoke(f, v, std::index_sequence_for<A...>());
  };
  (void)std::initializer_list<int>{(extra(g, extras), 0)...};
  functions().push_back(g);
}
struct Module {
  template <typename F, typename... E> Module& def(const char* name, F f, const E&... extras) { bind(name, std::function(f), extras...); return *this; }
  std::string& doc() { static std::string d; return d; }
};
}  // namespace kw
namespace pybind11 { inline c10::nullopt_t none() { return c10::nullopt; } typedef kw::Module module_; typedef kw::Module module; typedef kw::arg arg; struct gil_scoped_release {};
namespace literals { inline kw::arg operator""_a(const char* n, size_t) { return kw::arg(n); } } }
namespace py = pybind11;
#define KW_JOIN2(a, b) a##b
#define KW_JOIN(a, b) KW_JOIN2(a, b)
#define PYBIND11_MODULE(NAME, m)                                                   \
  static void KW_JOIN(kw_init_, NAME)(kw::Module& m);                              \
  static const int KW_JOIN(kw_ready_, NAME) = [] { static kw::Module module; KW_JOIN(kw_init_, NAME)(module); return 0; }(); \
  static void KW_JOIN(kw_init_, NAME)(kw::Module& m)
#define TORCH_LIBRARY(NAME, m) PYBIND11_MODULE(NAME, m)
#define KW_BIND(f) static const int KW_JOIN(kw_bound_, f) = [] { kw::bind(#f, std::function(&f)); return 0; }();

#ifndef KW_NO_ENTRY
extern "C" {
inline __attribute__((used, visibility("default"))) void kw_set_python(KwPython p) { kw::python() = p; }
inline __attribute__((used, visibility("default"))) const char* kw_function_name(int k) { return size_t(k) < kw::functions().size() ? kw::functions()[k].name.c_str() : nullptr; }
inline __attribute__((used, visibility("default"))) int kw_function_count(int k) { return int(kw::functions()[k].count); }
inline __attribute__((used, visibility("default"))) const char* kw_argument_name(int k, int n) { auto& f = kw::functions()[k]; return size_t(n) < f.names.size() ? f.names[n].c_str() : nullptr; }
inline __attribute__((used, visibility("default"))) int kw_argument_default(int k, int n, KwValue* into) { auto& f = kw::functions()[k]; if (size_t(n) >= f.defaults.size() || f.defaults[n].kind < 0) return 0; *into = f.defaults[n]; return 1; }
// Results go to Python through the callback named "=": they point into memory that ends with this call
inline __attribute__((used, visibility("default"))) int kw_call(int k, const KwValue* v, int n, char* error, int room) {
  try {
    kw::Arguments result = kw::functions()[k].call(v, n);
    kw::call("=", result);
    return 0;
  } catch (const std::exception& e) {
    std::strncpy(error, e.what(), room - 1);
    return 1;
  }
}
}
#endif
