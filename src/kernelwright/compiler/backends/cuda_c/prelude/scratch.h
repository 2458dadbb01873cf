// Memory for tiles that do not fit into shared memory; grows as needed
static char* scratch_memory(size_t bytes) {
  static char* memory = nullptr;
  static size_t capacity = 0;
  if (bytes > capacity) {
    cudaDeviceSynchronize();
    cudaFree(memory);
    cudaMalloc(&memory, bytes);
    capacity = bytes;
  }
  return memory;
}
