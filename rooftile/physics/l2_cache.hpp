// A cache under LRU, block by block: what is read again from memory, and what is written back. Blocks are numbered, and belong to
// tensors, so that the traffic of several kernels that run one after the other is told apart by tensor [M32, M34].
#pragma once

#include <cstdint>
#include <vector>

namespace rooftile {

/// Bytes of one tensor.
struct CacheTraffic {
    std::int64_t asked = 0;    ///< of the cache, by reads: by each cluster that wants it
    std::int64_t read = 0;     ///< from memory
    std::int64_t written = 0;  ///< back to memory
    std::int64_t dirty = 0;    ///< to be written back yet
};

/// Who reads a block: one cluster, whose SMs are of one partition, or several, of all.
enum class Readers : unsigned char { one, many };

/// Keeps the blocks used last whose bytes fit into `capacity`. What is written stays until its place is needed, and is written back
/// then; written again before that, it is written back once.
///
/// An L2 of several partitions keeps each address in one of them, where it is written, and a copy in each other whose SMs read it. So
/// of p times `capacity` a block takes its bytes once when it is written, p times when many have read it, and 1 + (p - 1) / p times
/// in the mean when one has.
class L2Cache {
  public:
    /// `capacity`: of one partition.
    explicit L2Cache(std::int64_t capacity, int partitions = 1);

    /// Another tensor of so many blocks; gives the number of its first one. Before the first access.
    std::int64_t add_tensor(std::int64_t blocks);
    /// True where all of it was there. A block has the same size at each access. `askers` want it at once: of those that follow the first
    /// it is on its way.
    bool read(std::int64_t block, std::int64_t bytes, Readers readers = Readers::many, std::int64_t askers = 1);
    void write(std::int64_t block, std::int64_t bytes);
    /// Writes back what is dirty; it stays.
    void write_back();
    void write_back(std::size_t tensor);
    /// Forgets it, dirty or not: nobody reads it again.
    void discard(std::int64_t block);

    /// Of the tensor that was added as number `tensor`.
    const CacheTraffic& traffic(std::size_t tensor) const { return traffic_[tensor]; }
    std::int64_t held_bytes() const { return held_; }

  private:
    struct Node {
        int before = 0, after = 0;
        std::int64_t bytes = 0;   ///< 0: not here
        std::int64_t places = 0;  ///< bytes of one partition that it takes up
        int tensor = 0;
        bool dirty = false;
    };
    Node& node(int block) { return nodes_[std::size_t(block)]; }
    CacheTraffic& traffic_of(const Node& n) { return traffic_[std::size_t(n.tensor)]; }
    bool touch(std::int64_t block, std::int64_t bytes, std::int64_t places);
    void unlink(int block);
    void drop(int block);
    void write_back(Node& n);

    std::vector<Node> nodes_;  // the first is the ends of the list; block b is node b + 1
    std::vector<CacheTraffic> traffic_;
    std::int64_t capacity_, held_ = 0;
    int partitions_;
};

}  // namespace rooftile
