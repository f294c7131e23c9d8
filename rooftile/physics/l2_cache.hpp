// A cache under LRU, block by block: what is read again from memory, and what is written back. Blocks are numbered, and belong to
// tensors, so that the traffic of several kernels that run one after the other is told apart by tensor [M32, M34].
#pragma once

#include <cstdint>
#include <vector>

namespace rooftile {

/// Bytes of one tensor.
struct CacheTraffic {
    std::int64_t asked = 0;    ///< of the cache, by reads
    std::int64_t read = 0;     ///< from memory
    std::int64_t written = 0;  ///< back to memory
};

/// Keeps the blocks used last whose bytes fit into `capacity`. What is written stays until its place is needed, and is written back
/// then; written again before that, it is written back once.
class L2Cache {
  public:
    explicit L2Cache(std::int64_t capacity);

    /// Another tensor of so many blocks; gives the number of its first one. Before the first access.
    std::int64_t add_tensor(std::int64_t blocks);
    /// True where all of it was there. A block has the same size at each access.
    bool read(std::int64_t block, std::int64_t bytes);
    void write(std::int64_t block, std::int64_t bytes);
    /// Writes back what is dirty; it stays.
    void write_back();

    /// Of the tensor that was added as number `tensor`.
    const CacheTraffic& traffic(std::size_t tensor) const { return traffic_[tensor]; }
    std::int64_t held_bytes() const { return held_; }

  private:
    struct Node {
        int before = 0, after = 0;
        std::int64_t bytes = 0;  ///< 0: not here
        int tensor = 0;
        bool dirty = false;
    };
    Node& node(int block) { return nodes_[std::size_t(block)]; }
    bool touch(std::int64_t block, std::int64_t bytes);
    void unlink(int block);
    void drop_last();

    std::vector<Node> nodes_;  // the first is the ends of the list; block b is node b + 1
    std::vector<CacheTraffic> traffic_;
    std::int64_t capacity_, held_ = 0;
};

}  // namespace rooftile
