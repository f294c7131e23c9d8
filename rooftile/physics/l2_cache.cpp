#include "rooftile/physics/l2_cache.hpp"

#include <cassert>

namespace rooftile {

L2Cache::L2Cache(std::int64_t capacity) : nodes_(1), capacity_(capacity) {}

std::int64_t L2Cache::add_tensor(std::int64_t blocks) {
    assert(held_ == 0);
    const auto first = std::int64_t(nodes_.size()) - 1;
    nodes_.resize(nodes_.size() + std::size_t(blocks), Node{.tensor = int(traffic_.size())});
    traffic_.emplace_back();
    return first;
}

bool L2Cache::read(std::int64_t block, std::int64_t bytes) {
    CacheTraffic& traffic = traffic_[std::size_t(node(int(block) + 1).tensor)];
    traffic.asked += bytes;
    const bool hit = touch(block, bytes);
    if (!hit) traffic.read += bytes;
    return hit;
}

void L2Cache::write(std::int64_t block, std::int64_t bytes) {
    node(int(block) + 1).dirty = true;
    touch(block, bytes);
}

void L2Cache::write_back() {
    for (Node& n : nodes_) {
        if (n.dirty) traffic_[std::size_t(n.tensor)].written += n.bytes;
        n.dirty = false;
    }
}

bool L2Cache::touch(std::int64_t block, std::int64_t bytes) {
    const int b = int(block) + 1;
    const bool hit = node(b).bytes > 0;
    if (hit) unlink(b);
    else held_ += bytes;
    Node& ends = nodes_.front();
    node(b).before = 0, node(b).after = ends.after, node(b).bytes = bytes;
    node(ends.after).before = b;
    nodes_.front().after = b;
    while (held_ > capacity_) drop_last();
    return hit;
}

void L2Cache::unlink(int b) {
    node(node(b).before).after = node(b).after;
    node(node(b).after).before = node(b).before;
}

void L2Cache::drop_last() {
    const int last = nodes_.front().before;
    Node& n = node(last);
    if (n.dirty) traffic_[std::size_t(n.tensor)].written += n.bytes;
    held_ -= n.bytes;
    unlink(last);
    n.bytes = 0, n.dirty = false;
}

}  // namespace rooftile
