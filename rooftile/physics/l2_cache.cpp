#include "rooftile/physics/l2_cache.hpp"

#include <algorithm>
#include <cassert>

namespace rooftile {

L2Cache::L2Cache(std::int64_t capacity, int partitions) : nodes_(1), capacity_(capacity), partitions_(partitions) {}

std::int64_t L2Cache::add_tensor(std::int64_t blocks) {
    assert(held_ == 0);
    const auto first = std::int64_t(nodes_.size()) - 1;
    nodes_.resize(nodes_.size() + std::size_t(blocks), Node{.tensor = int(traffic_.size())});
    traffic_.emplace_back();
    return first;
}

bool L2Cache::read(std::int64_t block, std::int64_t bytes, Readers readers, std::int64_t askers) {
    CacheTraffic& traffic = traffic_of(node(int(block) + 1));
    traffic.asked += bytes * askers;
    const bool hit = touch(block, bytes, readers == Readers::many ? bytes : bytes * (2 * partitions_ - 1) / (partitions_ * partitions_));
    if (!hit) traffic.read += bytes;
    return hit;
}

void L2Cache::write(std::int64_t block, std::int64_t bytes) {
    Node& n = node(int(block) + 1);
    if (!n.dirty) traffic_of(n).dirty += bytes;
    n.dirty = true;
    touch(block, bytes, bytes / partitions_);
}

void L2Cache::write_back() {
    for (Node& n : nodes_) write_back(n);
}

void L2Cache::write_back(std::size_t tensor) {
    for (Node& n : nodes_)
        if (n.tensor == int(tensor)) write_back(n);
}

void L2Cache::discard(std::int64_t block) {
    Node& n = node(int(block) + 1);
    if (n.bytes == 0) return;
    if (n.dirty) traffic_of(n).dirty -= n.bytes;
    n.dirty = false;
    drop(int(block) + 1);
}

void L2Cache::write_back(Node& n) {
    if (!n.dirty) return;
    traffic_of(n).written += n.bytes, traffic_of(n).dirty -= n.bytes;
    n.dirty = false;
}

bool L2Cache::touch(std::int64_t block, std::int64_t bytes, std::int64_t places) {
    const int b = int(block) + 1;
    const bool hit = node(b).bytes > 0;
    if (hit) unlink(b);
    places = std::max(places, node(b).places);  // copies stay
    held_ += places - node(b).places;
    Node& ends = nodes_.front();
    node(b).before = 0, node(b).after = ends.after, node(b).bytes = bytes, node(b).places = places;
    node(ends.after).before = b;
    nodes_.front().after = b;
    while (held_ > capacity_) drop(nodes_.front().before);
    return hit;
}

void L2Cache::unlink(int b) {
    node(node(b).before).after = node(b).after;
    node(node(b).after).before = node(b).before;
}

void L2Cache::drop(int b) {
    Node& n = node(b);
    write_back(n);
    held_ -= n.places;
    unlink(b);
    n.bytes = n.places = 0;
}

}  // namespace rooftile
