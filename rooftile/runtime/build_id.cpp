#include "rooftile/runtime/build_id.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/core.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rooftile {
namespace {

struct Search {
    ElfW(Addr) load_address;
    std::string id;
};

/// Looks through one note segment for the GNU build id.
std::string id_in_notes(const char* at, std::size_t size) {
    const char* end = at + size;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const char* name = at + sizeof note;
        const char* content = name + (note.n_namesz + 3) / 4 * 4;
        const char* next = content + (note.n_descsz + 3) / 4 * 4;
        if (next > end) break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
            std::string hex;
            for (unsigned i = 0; i < note.n_descsz; ++i)
                hex += fmt::format("{:02x}", static_cast<unsigned char>(content[i]));
            return hex;
        }
        at = next;
    }
    return {};
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
    Search& search = *static_cast<Search*>(data);
    if (info->dlpi_addr != search.load_address) return 0;
    for (int i = 0; i < info->dlpi_phnum && search.id.empty(); ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        if (header.p_type == PT_NOTE)
            search.id =
                id_in_notes(reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz);
    }
    return 1;
}

std::string hash_of_beginning(const std::string& path) {
    std::error_code ignored;
    auto size = std::filesystem::file_size(path, ignored);
    std::vector<char> bytes(1 << 20);
    std::ifstream file(path, std::ios::binary);
    file.read(bytes.data(), std::streamsize(bytes.size()));
    return fmt::format("{}-{:016x}", size, XXH3_64bits(bytes.data(), std::size_t(file.gcount())));
}

}  // namespace

std::string build_id(const Library& library) {
    link_map* map = nullptr;
    Search search{};
    if (library && dlinfo(library.handle, RTLD_DI_LINKMAP, &map) == 0 && map) {
        search.load_address = map->l_addr;
        dl_iterate_phdr(visit, &search);
    }
    return search.id.empty() ? hash_of_beginning(library.path) : search.id;
}

}  // namespace rooftile
