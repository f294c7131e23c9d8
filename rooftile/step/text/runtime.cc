// Runs a kernel's CTAs on the CPU, one after the other: threads are fibers, each runs until it waits. The compiler calls __tsan_* before
// every access of memory (-fsanitize=thread) and __ubsan_* where an index or an alignment is wrong; these are their definitions. The
// first fault ends the process. Compiled without either option, and beside the kernel's own text, not with Rooftile.
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define HERE uintptr_t(__builtin_return_address(0))

struct Size3 {
    unsigned x, y, z;
};
/// As cuda.hh describes the kernel's parameters: bytes of one, of what it points to (0: no pointer); 'p' of pointers, 'i', 'f', 'h', 'b' or
/// 's', and the same of what is pointed to.
struct Parameter {
    int bytes, pointee;
    char kind, pointee_kind;
    const char* type;
};
constexpr int max_threads = 1024, lanes = 32, max_depth = 32, max_shared = 256 << 10;
extern "C" {
Size3 threadIdx, blockIdx, blockDim, gridDim;
alignas(1024) char rooftile_dynamic_shared[max_shared];
const Parameter* rooftile_parameters(int* count);
extern __thread char rooftile_shared_anchor[];
extern char __executable_start[], _end[];
void rooftile_kernel(void** arguments);
}

namespace {

enum State : char { ready, at_barrier, at_warp, done };
enum { warp_sync = 0 };
struct Fiber {
    ucontext_t context;
    char* stack;
    State state;
    int warp_kind;
    uintptr_t pc, callers[max_depth];
    int depth;
    unsigned mask, active;
    uint64_t value, *got;
    unsigned polls;
    int index;
};
struct Trace {
    uint32_t pc, epoch, warp_epoch;
    uint16_t thread;
    uint8_t how, bytes;  // bytes: which of the cell's, a bit each
};
/// Who wrote and who read an element, or a byte of shared memory, last.
struct Cell {
    Trace write, reads[2];
};
struct Tensor {
    size_t begin, bytes, cell_bytes;  // begin: in the arena
    Cell* cells;
};
struct Shared {
    char name[64];
    size_t begin, bytes;  // in the block of static shared memory
    bool guard;           // of the compiler's own
};
/// A conflict that counts only where the write changes what is there.
struct Pending {
    char *address, old[16];
    size_t bytes;
    uintptr_t pc;
    Trace other;
};
/// The first read of shared memory that nobody has written: a race where another thread writes it before the next barrier, else a fault then.
struct Unwritten {
    char* address;
    size_t bytes;
    int how;
    Fiber reader;
};
constexpr size_t page = 4096, stack_bytes = 256 << 10, guard_bytes = 16 << 10;  // a stack's lowest bytes are the guard

Fiber fibers[max_threads];
Fiber* now;
ucontext_t scheduler;
int threads, alive, report = -1;
unsigned epoch, cta_epoch, warp_epochs[max_threads / lanes];
char *arena, *shared;  // shared: the block that static shared variables lie in
size_t arena_bytes, shared_bytes, dynamic_bytes;
Tensor tensors[64];
int tensor_count;
Shared variables[4096];
int variable_count;
Cell *shared_cells, *dynamic_cells;
Pending pending;
Unwritten unwritten;
bool fenced, stopping;
long long ctas, ctas_done, cta, watch_cta;
constexpr long long most_ctas = 1 << 26;
int watch_thread, said;
struct {
    unsigned epoch;
    long long cta;
} * begun;
void* arguments[64];
uint64_t numbers[64];
double limit_seconds, cta_start;
int barrier_sum;

double seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void tell(const char* key, const char* format, ...) {
    char line[4096];
    int n = snprintf(line, sizeof line, "%s\t", key);
    va_list list;
    va_start(list, format);
    n += vsnprintf(line + n, sizeof line - size_t(n) - 1, format, list);
    va_end(list);
    if (n > int(sizeof line) - 2) n = int(sizeof line) - 2;
    for (int i = 0; i < n; ++i)
        if (line[i] == '\n') line[i] = ' ';
    line[n] = '\n';
    if (write(report, line, size_t(n) + 1) < 0) _exit(1);
}

int index_of(const Fiber* f) { return int(f - fibers); }

/// The place and what called it, innermost first.
void tell_place(const char* key, uintptr_t pc, const Fiber* f) {
    char text[24 * max_depth + 24];
    int n = snprintf(text, sizeof text, "%lx", (unsigned long)pc);
    if (f)
        for (int i = f->depth < max_depth ? f->depth : max_depth; i-- > 1;)
            n += snprintf(text + n, sizeof text - size_t(n), " %lx", (unsigned long)f->callers[i]);
    tell(key, "%s", text);
}

[[noreturn]] void end(int code) {
    tell("ctas", "%lld %lld", ctas_done, ctas);
    tell("end", "%d", code);
    _exit(code);
}

void where(const char* address);

/// The end of a fault whose particulars were told. An earlier one goes before it.
[[noreturn]] void fault(const char* kind, uintptr_t pc, const Fiber* f = now, int thread = -1) {
    stopping = true;
    if (unwritten.bytes && thread < 0) {
        tell("reset", "");
        where(unwritten.address);
        tell("access", "%zu %d", unwritten.bytes, unwritten.how);
        kind = "unwritten", f = &unwritten.reader, pc = f->pc, thread = f->index;
    }
    tell("fault", "%s", kind);
    tell("thread", "%d", thread < 0 ? index_of(f) : thread);
    tell("cta", "%lld", cta);
    tell_place("pc", pc, f);
    end(3);
}

void tell_object(const char* kind, long long index, const char* name, long long extent, long long offset) {
    tell("object", "%s %lld %s %lld %lld", kind, index, name, extent, offset);
}

/// The thread that `other` is of, and its CTA where it is another.
void tell_other(const Trace& other) {
    tell("other_thread", "%d", other.thread);
    tell("other_pc", "%x", other.pc);
    tell("other_access", "%d", other.how);
    long long low = 0, high = ctas_done;
    while (low < high) {
        const long long middle = (low + high + 1) / 2;
        if (begun[middle].epoch <= other.epoch) low = middle;
        else high = middle - 1;
    }
    tell("other_cta", "%lld", begun[low].cta);
}

/// Which object has it.
void where(const char* address) {
    for (int i = 0; i < tensor_count; ++i) {
        const Tensor& t = tensors[i];
        const char* begin = arena + t.begin;
        if (address >= begin && address < begin + t.bytes) return tell_object("tensor", i, "-", (long long)t.bytes, address - begin);
    }
    for (int i = 0; i < variable_count; ++i) {
        const Shared& s = variables[i];
        if (address >= shared + s.begin && address < shared + s.begin + s.bytes)
            return tell_object("shared", i, s.name, (long long)s.bytes, address - shared - (long long)s.begin);
    }
    if (address >= rooftile_dynamic_shared && address < rooftile_dynamic_shared + max_shared)
        tell_object("dynamic", 0, "-", (long long)dynamic_bytes, address - rooftile_dynamic_shared);
}

void settle() {
    if (!pending.bytes) return;
    const size_t bytes = pending.bytes;
    pending.bytes = 0;
    if (memcmp(pending.address, pending.old, bytes) == 0) return;
    where(pending.address);
    tell("access", "%zu 1", bytes);
    tell_other(pending.other);
    fault("race", pending.pc);
}

Trace trace(uintptr_t pc, int how) {
    return {uint32_t(pc), epoch, warp_epochs[index_of(now) / lanes], uint16_t(index_of(now)), uint8_t(how), 0xff};
}

/// Whether nothing orders what `other` is of before the access of this thread.
bool unordered(const Trace& other, bool global) {
    if (other.epoch == 0) return false;
    if (other.epoch < cta_epoch) return global && !fenced;
    const int me = index_of(now);
    if (other.thread == me || other.epoch != epoch) return false;
    return other.thread / lanes != me / lanes || other.warp_epoch >= warp_epochs[me / lanes];
}

enum How { reads = 0, writes = 1, atomic = 2 };

void race(const Trace& other, char* address, size_t bytes, How how, uintptr_t pc) {
    if (how == writes && bytes <= sizeof pending.old) {  // it may write what is there
        pending = {address, {}, bytes, pc, other};
        memcpy(pending.old, address, bytes);
        return;
    }
    where(address);
    tell("access", "%zu %d", bytes, how);
    tell_other(other);
    fault("race", pc);
}

/// Of `bytes` at `at` in an object with a cell for each `cell_bytes`.
void mark(Cell* cell, size_t at, size_t cell_bytes, char* address, size_t bytes, How how, uintptr_t pc, bool global) {
    Trace me = trace(pc, how);
    for (size_t begin = at / cell_bytes * cell_bytes; begin < at + bytes; begin += cell_bytes) {
        Cell& c = cell[begin / cell_bytes];
        const unsigned before = begin < at ? unsigned(at - begin) : 0,
                       behind = begin + cell_bytes > at + bytes ? unsigned(begin + cell_bytes - at - bytes) : 0;
        me.bytes = uint8_t(((1u << cell_bytes) - 1) >> behind & ~((1u << before) - 1));
        const auto conflicts = [&](const Trace& other) { return (other.bytes & me.bytes) && !pending.bytes && unordered(other, global); };
        const bool free = c.write.how == atomic && (how == atomic || (how == reads && global));
        if (!free && conflicts(c.write)) race(c.write, address, bytes, how, pc);
        if (how == reads) {
            Trace& first = c.reads[0];
            (first.thread == me.thread || first.epoch != epoch ? first : c.reads[1]) = me;
            continue;
        }
        if (!global && c.write.epoch < cta_epoch)
            for (const Trace& r : c.reads)
                if (conflicts(r)) {
                    where(address);
                    tell("access", "%zu %d", bytes, reads);
                    tell_other(me);
                    fault("race", r.pc, nullptr, r.thread);
                }
        if (how == writes || !global)
            for (const Trace& r : c.reads)
                if (conflicts(r)) race(r, address, bytes, how, pc);
        c.write = me;
    }
}

[[noreturn]] void outside(const char* kind, int index, const char* name, size_t extent, long long offset, size_t bytes, How how,
                          uintptr_t pc) {
    tell_object(kind, index, name, (long long)extent, offset);
    tell("access", "%zu %d", bytes, how);
    fault("outside", pc);
}

void in_tensor(char* address, size_t bytes, How how, uintptr_t pc) {
    const size_t at = size_t(address - arena);
    for (int i = 0; i < tensor_count; ++i) {
        const Tensor& t = tensors[i];
        // Memory between two tensors belongs to the nearer one.
        const size_t end = t.begin + t.bytes, next = i + 1 < tensor_count ? tensors[i + 1].begin : arena_bytes;
        if (at >= end + (next - end) / 2 && i + 1 < tensor_count) continue;
        if (at < t.begin || at + bytes > end) outside("tensor", i, "-", t.bytes, (long long)at - (long long)t.begin, bytes, how, pc);
        mark(t.cells, at - t.begin, t.cell_bytes, address, bytes, how, pc, true);
        return;
    }
}

void in_shared(Cell* first, char* address, size_t bytes, How how, uintptr_t pc) {
    if (how != writes && !unwritten.bytes)
        for (size_t i = 0; i < bytes; ++i)
            if (first[i].write.epoch < cta_epoch) {
                unwritten = {address, bytes, how, *now};
                unwritten.reader.pc = pc, unwritten.reader.index = index_of(now);
                break;
            }
    mark(first, 0, 1, address, bytes, how, pc, false);
}

void in_static_shared(char* address, size_t bytes, How how, uintptr_t pc) {
    const long long at = address - shared;
    const Shared* nearest = nullptr;
    long long least = 0;
    for (int i = 0; i < variable_count; ++i) {
        const Shared& s = variables[i];
        const long long begin = (long long)s.begin, end = begin + (long long)s.bytes;
        if (s.guard) {
            if (at >= begin && at < end) return;
            continue;
        }
        if (at >= begin && at + (long long)bytes <= end) return in_shared(shared_cells + at, address, bytes, how, pc);
        const long long away = at < begin ? begin - at : at - end;
        if (!nearest || away < least) nearest = &s, least = away;
    }
    if (nearest) outside("shared", 0, nearest->name, nearest->bytes, at - (long long)nearest->begin, bytes, how, pc);
}

/// Before each access of the kernel.
void access(const void* pointer, size_t bytes, How how, uintptr_t pc) {
    if (!now || stopping) return;
    settle();
    char* address = static_cast<char*>(const_cast<void*>(pointer));
    if (size_t(address - now->stack) < stack_bytes || bytes == 0) return;
    now->pc = pc;
    if (size_t(address - arena) < arena_bytes) return in_tensor(address, bytes, how, pc);
    // A page on either side: what was missed by a little.
    if (shared && size_t(address - shared + page) < shared_bytes + 2 * page) return in_static_shared(address, bytes, how, pc);
    if (size_t(address - rooftile_dynamic_shared) < max_shared) {
        const size_t at = size_t(address - rooftile_dynamic_shared);
        if (at + bytes > dynamic_bytes) outside("dynamic", 0, "-", dynamic_bytes, (long long)at, bytes, how, pc);
        return in_shared(dynamic_cells + at, address, bytes, how, pc);
    }
    if (address >= __executable_start && address < _end) return;  // __constant__, __device__ and the like
    for (int i = 0; i < threads; ++i)
        if (size_t(address - fibers[i].stack) < stack_bytes) {
            tell("owner", "%d", i);
            fault("local", pc);
        }
    if (address >= _end && address < static_cast<char*>(sbrk(0))) return;  // malloc
    tell("address", "%lx", (unsigned long)address);
    tell("access", "%zu %d", bytes, how);
    fault("wild", pc);
}

void to_scheduler() {
    Fiber* me = now;
    swapcontext(&me->context, &scheduler);
}

/// A volatile read or an atomic in a loop waits for another thread.
void poll() {
    constexpr unsigned polls_a_turn = 64;
    if (++now->polls % polls_a_turn == 0) to_scheduler();
}

unsigned living(int warp) {
    unsigned mask = 0;
    for (int lane = 0; lane < lanes; ++lane)
        if (const int i = warp * lanes + lane; i < threads && fibers[i].state != done) mask |= 1u << lane;
    return mask;
}

/// Lets the lanes of `mask` go on where all that live wait for it.
void complete(int warp, unsigned mask, int kind) {
    Fiber* const first = fibers + warp * lanes;
    const unsigned members = mask & living(warp);
    for (int lane = 0; lane < lanes; ++lane)
        if (members >> lane & 1 && (first[lane].state != at_warp || first[lane].mask != mask || first[lane].warp_kind != kind)) return;
    for (int to = 0; to < lanes; ++to) {
        if (!(members >> to & 1)) continue;
        for (int from = 0; from < lanes; ++from)
            if (members >> from & 1 && first[to].got) first[to].got[from] = first[from].value;
        first[to].active = members;
        first[to].state = ready;
    }
    if (kind == warp_sync) ++warp_epochs[warp];
}

void start() {
    rooftile_kernel(arguments);
    settle();
    now->state = done;
    --alive;
    const int warp = index_of(now) / lanes;
    for (int lane = 0; lane < lanes && warp * lanes + lane < threads; ++lane)
        if (const Fiber& f = fibers[warp * lanes + lane]; f.state == at_warp) complete(warp, f.mask, f.warp_kind);
    to_scheduler();
}

/// Which threads wait where, in order of their places; those that ended have place 0.
void tell_waiting() {
    static bool told[max_threads];
    for (int i = 0; i < threads; ++i) {
        if (told[i]) continue;
        const auto place = [](const Fiber& f) { return f.state == done ? 0 : f.pc; };
        char text[2048];
        int n = 0;
        for (int j = i; j < threads; ++j) {
            if (place(fibers[j]) != place(fibers[i]) || told[j]) continue;
            int last = j;
            while (last + 1 < threads && place(fibers[last + 1]) == place(fibers[i])) ++last;
            for (int k = j; k <= last; ++k) told[k] = true;
            if (n < int(sizeof text) - 32)
                n += snprintf(text + n, sizeof text - size_t(n), last > j ? "%s%d-%d" : "%s%d", n ? ", " : "", j, last);
            j = last;
        }
        tell("group", "%lx %d %s", (unsigned long)place(fibers[i]), int(fibers[i].state), text);
    }
}

void run_cta() {
    alive = threads;
    begun[ctas_done] = {++epoch, cta};
    cta_epoch = epoch;
    cta_start = seconds();
    blockIdx = {unsigned(cta % gridDim.x), unsigned(cta / gridDim.x % gridDim.y), unsigned(cta / gridDim.x / gridDim.y)};
    for (int i = 0; i < threads; ++i) {
        Fiber& f = fibers[i];
        f.state = ready, f.depth = 0, f.pc = 0;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack + guard_bytes;
        f.context.uc_stack.ss_size = stack_bytes - guard_bytes;
        f.context.uc_link = nullptr;
        makecontext(&f.context, start, 0);
    }
    while (alive > 0) {
        bool any = false;
        for (int i = 0; i < threads; ++i) {
            if (fibers[i].state != ready) continue;
            any = true;
            threadIdx = {unsigned(i) % blockDim.x, unsigned(i) / blockDim.x % blockDim.y, unsigned(i) / blockDim.x / blockDim.y};
            now = fibers + i;
            swapcontext(&scheduler, &now->context);
            now = nullptr;
        }
        if (any) continue;
        const Fiber* first = nullptr;
        bool together = alive == threads;
        for (int i = 0; i < threads; ++i) {
            if (fibers[i].state == done) continue;
            if (!first) first = fibers + i;
            together = together && fibers[i].state == at_barrier && fibers[i].pc == first->pc;
        }
        if (!together) {
            tell_waiting();
            now = const_cast<Fiber*>(first);
            fault("divergent", first->pc);
        }
        if (unwritten.bytes) fault("unwritten", 0);
        ++epoch;
        int sum = 0;
        for (int i = 0; i < threads; ++i) sum += fibers[i].value != 0;
        barrier_sum = sum;
        for (int i = 0; i < threads; ++i) fibers[i].state = ready;
    }
    if (unwritten.bytes) fault("unwritten", 0);
    ++ctas_done;
    *reinterpret_cast<volatile long long*>(arena) = ctas_done;  // read by whoever shows how far this is; no tensor is there
}

uintptr_t pc_of(void* context) {
#if defined __x86_64__
    return uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined __aarch64__
    return uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
    return 0;
#endif
}

void on_signal(int signal, siginfo_t* info, void* context) {
    if (signal == SIGALRM && !now && !stopping) {  // between two threads
        const itimerval soon{{0, 0}, {0, 1000}};
        setitimer(ITIMER_REAL, &soon, nullptr);
        return;
    }
    if (!now || stopping) _exit(1);
    if (signal == SIGALRM && ctas_done > 0 && seconds() - cta_start < limit_seconds / 2) end(0);  // slow, not endless
    const char* address = static_cast<char*>(info->si_addr);
    const bool overflow = signal == SIGSEGV && size_t(address - now->stack) < guard_bytes;
    tell_place("last_pc", now->pc, nullptr);
    if (signal == SIGSEGV || signal == SIGBUS) tell("address", "%lx", (unsigned long)address), tell("access", "0 0");
    fault(signal == SIGALRM                       ? "endless"
          : signal == SIGFPE                      ? "division"
          : overflow                              ? "stack"
          : signal == SIGABRT || signal == SIGILL ? "trap"
                                                  : "wild",
          pc_of(context));
}

/// The static shared variables of the kernel are this program's thread-local ones: its symbols name them.
void read_symbols() {
    const int file = open("/proc/self/exe", O_RDONLY);
    const off_t bytes = lseek(file, 0, SEEK_END);
    const char* image = static_cast<char*>(mmap(nullptr, size_t(bytes), PROT_READ, MAP_PRIVATE, file, 0));
    close(file);
    const auto* head = reinterpret_cast<const Elf64_Ehdr*>(image);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + head->e_shoff);
    for (int s = 0; s < head->e_shnum; ++s) {
        if (sections[s].sh_type != SHT_SYMTAB) continue;
        const auto* symbols = reinterpret_cast<const Elf64_Sym*>(image + sections[s].sh_offset);
        const char* names = image + sections[sections[s].sh_link].sh_offset;
        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; ++i) {
            const Elf64_Sym& symbol = symbols[i];
            const char* name = names + symbol.st_name;
            if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_size == 0) continue;
            if (!strcmp(name, "rooftile_shared_anchor")) shared = rooftile_shared_anchor - symbol.st_value;
            if (strstr(name, "rooftile_gap_") || strstr(name, "rooftile_shared_")
                || variable_count == int(sizeof variables / sizeof *variables))
                continue;
            int status = 0;
            const char *readable = abi::__cxa_demangle(name, nullptr, nullptr, &status), *last = status == 0 ? readable : name;
            for (const char* p = last; *p; ++p)
                if (p[0] == ':' && p[1] == ':') last = p + 2;
            Shared& v = variables[variable_count++];
            snprintf(v.name, sizeof v.name, "%s", last);
            v.begin = symbol.st_value, v.bytes = symbol.st_size, v.guard = !strncmp(name, "_ZGV", 4);
            if (v.begin + v.bytes > shared_bytes) shared_bytes = v.begin + v.bytes;
        }
    }
}

[[noreturn]] void mismatch(const char* format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    tell("mismatch", "%s", text);
    _exit(2);
}

template <class T>
T* pages(size_t count) {
    void* p = mmap(nullptr, (count + 1) * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) mismatch("stepping it takes more memory than there is; give fewer or smaller tensors");
    return static_cast<T*>(p);
}

/// "block 256 1 1 ..." and so on: rooftile/step/run.cpp writes it.
void read_request(const char* path, const char* memory) {
    FILE* f = fopen(path, "r");
    int count = 0;
    long long only = -1;
    if (!f
        || fscanf(f, "%u %u %u %u %u %u %zu %lf %lld %d %d %zu %d", &gridDim.x, &gridDim.y, &gridDim.z, &blockDim.x, &blockDim.y,
                  &blockDim.z, &dynamic_bytes, &limit_seconds, &only, &watch_thread, &tensor_count, &arena_bytes, &count)
               != 13)
        _exit(1);
    threads = int(blockDim.x * blockDim.y * blockDim.z);
    watch_cta = only;
    const int file = open(memory, O_RDWR);
    arena = static_cast<char*>(mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
    if (arena == MAP_FAILED) _exit(1);
    for (int i = 0; i < tensor_count; ++i) {
        Tensor& t = tensors[i];
        if (fscanf(f, "%zu %zu %zu", &t.begin, &t.bytes, &t.cell_bytes) != 3) _exit(1);
        t.cells = pages<Cell>(t.bytes / t.cell_bytes + 1);
    }
    struct Given {
        int tensor, bytes;
        char kind, name[256];
        unsigned long long bits;
    };
    static Given given[64];
    for (int i = 0; i < count; ++i)
        if (fscanf(f, "%d %d %c %llx %255s", &given[i].tensor, &given[i].bytes, &given[i].kind, &given[i].bits, given[i].name) != 5)
            _exit(1);
    int declared = 0, next_tensor = 0, next_number = 0;
    const Parameter* const parameters = rooftile_parameters(&declared);
    if (count != declared) mismatch("it has %d parameters; given are %d", declared, count);
    // Pointers take the tensors in their order, and numbers the numbers.
    for (int i = 0; i < count; ++i) {
        const Parameter& p = parameters[i];
        const char* type = strstr(p.type, "T = ") ? strstr(p.type, "T = ") + 4 : p.type;
        const int length = int(strcspn(type, "];"));
        int& next = p.kind == 'p' ? next_tensor : next_number;
        while (next < count && (given[next].tensor >= 0) != (p.kind == 'p')) ++next;
        if (next == count)
            mismatch("its parameter %d is %.*s, and no %s is left for it", i + 1, length, type, p.kind == 'p' ? "--tensor" : "--arg");
        const Given& g = given[next++];
        arguments[i] = numbers + i;
        numbers[i] = p.kind == 'p' ? uint64_t(arena + tensors[g.tensor].begin) : g.bits;
        if (p.kind == 'p') {
            // A byte may be anything, and a vector or struct holds elements.
            const bool element = p.pointee_kind != 's', same = p.pointee == g.bytes && p.pointee_kind == g.kind;
            if (p.pointee > 1 && (element ? !same : p.pointee % g.bytes != 0))
                mismatch("its parameter %d is %.*s; the tensor %s has elements of another type", i + 1, length, type, g.name);
        } else if (p.kind != g.kind || (p.kind == 'f' ? p.bytes != g.bytes : p.bytes > g.bytes || (p.bytes < g.bytes && p.bytes >= 4)))
            mismatch("its parameter %d is %.*s, of %d B; given is %s", i + 1, length, type, p.bytes, g.name);
    }
    fclose(f);
    ctas = (long long)gridDim.x * gridDim.y * gridDim.z;
    begun = pages<__typeof__(*begun)>(size_t(ctas < most_ctas ? ctas : most_ctas));
    shared_cells = pages<Cell>(shared_bytes);
    dynamic_cells = pages<Cell>(max_shared);
    char* stacks = pages<char>(size_t(threads) * stack_bytes);
    for (int i = 0; i < threads; ++i) {
        fibers[i].stack = stacks + size_t(i) * stack_bytes;
        mprotect(fibers[i].stack, guard_bytes, PROT_NONE);
    }
}

}  // namespace

extern "C" {
#define ACCESS(bytes)                                                                        \
    void __tsan_read##bytes(void* p) { access(p, bytes, reads, HERE); }                      \
    void __tsan_write##bytes(void* p) { access(p, bytes, writes, HERE); }                    \
    void __tsan_unaligned_read##bytes(void* p) { access(p, bytes, reads, HERE); }            \
    void __tsan_unaligned_write##bytes(void* p) { access(p, bytes, writes, HERE); }          \
    void __tsan_volatile_write##bytes(void* p) { access(p, bytes, writes, HERE); }           \
    void __tsan_unaligned_volatile_write##bytes(void* p) { access(p, bytes, writes, HERE); } \
    void __tsan_volatile_read##bytes(void* p) { access(p, bytes, reads, HERE), poll(); }     \
    void __tsan_unaligned_volatile_read##bytes(void* p) { access(p, bytes, reads, HERE), poll(); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void* p, size_t bytes) { access(p, bytes, reads, HERE); }
void __tsan_write_range(void* p, size_t bytes) { access(p, bytes, writes, HERE); }
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void* caller) {
    if (!now || stopping) return;
    settle();
    if (now->depth++ < max_depth) now->callers[now->depth - 1] = uintptr_t(caller);
}
void __tsan_func_exit() {
    if (!now || stopping) return;
    settle();
    --now->depth;
}

struct SourcePlace {
    const char* file;
    unsigned line, column;
};
struct TypeName {
    uint16_t kind, info;
    char name[1];
};
void __ubsan_handle_out_of_bounds(const void* data, uintptr_t index) {
    struct Data {
        SourcePlace place;
        const TypeName *array, *index;
    };
    if (!now || stopping) return;
    settle();
    tell("index", "%ld", long(index));
    tell("type", "%s", static_cast<const Data*>(data)->array->name);
    fault("index", HERE);
}
void __ubsan_handle_type_mismatch_v1(const void* data, uintptr_t pointer) {
    struct Data {
        SourcePlace place;
        const TypeName* type;
        unsigned char log_alignment, kind;
    };
    const auto* d = static_cast<const Data*>(data);
    if (!now || stopping) return;
    settle();
    where(reinterpret_cast<const char*>(pointer));
    tell("type", "%s", d->type->name);
    tell("alignment", "%u", 1u << d->log_alignment);
    tell("address", "%lx", (unsigned long)pointer);
    fault("misaligned", HERE);
}

// What cuda.hh calls.
void rooftile_touch(const volatile void* p, size_t bytes, int how) { access(const_cast<const void*>(p), bytes, How(how), HERE); }
void rooftile_atomic_begin(const volatile void* p, size_t bytes, void* old) {
    if (uintptr_t(p) % bytes != 0) {
        tell("type", "an atomic of %zu B", bytes);
        tell("alignment", "%zu", bytes);
        fault("misaligned", HERE);
    }
    access(const_cast<const void*>(p), bytes, atomic, HERE);
    poll();
    memcpy(old, const_cast<const void*>(p), bytes);
}
void rooftile_atomic_end(volatile void* p, size_t bytes, const void* value) { memcpy(const_cast<void*>(p), value, bytes); }
int rooftile_barrier(int value) {
    settle();
    now->pc = HERE, now->value = uint64_t(value), now->state = at_barrier;
    to_scheduler();
    return barrier_sum;
}
unsigned rooftile_warp(unsigned mask, int kind, uint64_t value, uint64_t* got) {
    settle();
    Fiber& me = *now;
    const int i = index_of(now);
    me.pc = HERE;
    if (!(mask >> i % lanes & 1)) {
        tell("mask", "%08x", mask);
        fault("mask", HERE);
    }
    me.warp_kind = kind, me.mask = mask, me.value = value, me.got = got, me.state = at_warp;
    complete(i / lanes, mask, kind);
    while (me.state == at_warp) to_scheduler();
    return me.active;
}
unsigned rooftile_living() { return living(index_of(now) / lanes); }
int rooftile_rank() { return index_of(now); }
void rooftile_fence() { fenced = true; }
void rooftile_stop(const char* kind, const char* message) {
    tell("message", "%s", message);
    fault(kind, HERE);
}
int rooftile_watches() { return index_of(now) == watch_thread && (watch_cta < 0 || cta == watch_cta) && said < 10000; }
void rooftile_say(int line, const char* name, const char* value) {
    ++said;
    tell("watch", "%d\t%lld\t%s\t%s", line, cta, name, value);
}
int rooftile_printf(const char* format, ...) {
    static size_t written;
    char text[4096];
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    constexpr size_t most = 1 << 20;
    if (n > 0 && (written += size_t(n)) < most && write(1, text, n < int(sizeof text) ? size_t(n) : sizeof text - 1) < 0) return -1;
    return n;
}
void __assert_fail(const char* what, const char*, unsigned, const char*) noexcept {
    tell("message", "%s", what);
    fault("assert", HERE);
}
}

int main(int, char** argv) {
    report = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    read_symbols();
    read_request(argv[2], argv[3]);
    static char signal_stack[64 << 10];
    const stack_t stack{signal_stack, 0, sizeof signal_stack};
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGALRM};
    for (int signal : signals) sigaction(signal, &action, nullptr);
    itimerval timer{};
    timer.it_value.tv_sec = time_t(limit_seconds);
    timer.it_value.tv_usec = suseconds_t((limit_seconds - double(timer.it_value.tv_sec)) * 1e6);
    setitimer(ITIMER_REAL, &timer, nullptr);
    // The last one first: it is the one that sizes do not fill.
    if (watch_cta >= 0) {
        cta = watch_cta;
        run_cta();
    } else
        for (long long i = 0; i < ctas && i < most_ctas; ++i) {
            cta = i == 0 ? 0 : i == 1 ? ctas - 1 : i - 1;
            run_cta();
        }
    end(0);
}
