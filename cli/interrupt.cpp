#include "cli/interrupt.hpp"

#include <atomic>
#include <cassert>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "rooftile/error.hpp"

namespace rooftile::cli {
namespace {

volatile std::sig_atomic_t noting = 0;
volatile std::sig_atomic_t noted = 0;

// What a handler may read.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);

void remove_unfinished() {
    if (const char* path = unfinished.load()) ::unlink(path);
}

void on_end(int signal) {
    remove_unfinished();
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // comes when this returns
}

void on_interrupt(int) {
    if (noting && !noted) {
        noted = 1;
        return;
    }
    remove_unfinished();
    constexpr char text[] = "rooftile: interrupted\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text, sizeof text - 1);
    _exit(int(ExitCode::interrupted));
}

}  // namespace

void open_standard_streams() {
    // What open() gives is the lowest number that is free: once it is above stderr's, all three are taken.
    int file = 0;
    while (file >= 0 && file <= STDERR_FILENO) file = ::open("/dev/null", O_RDWR);
    if (file >= 0) ::close(file);
}

void handle_signals() {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is seen where it is written to
    std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may grow no more
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, nullptr);
    action.sa_handler = on_end;
    for (const int signal : {SIGTERM, SIGHUP}) {
        struct sigaction before {};
        if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
    }
}

UnfinishedFile::UnfinishedFile(const char* path) {
    assert(!unfinished.load());
    unfinished = path;
}
UnfinishedFile::~UnfinishedFile() { unfinished = nullptr; }

void note_interrupts() { noting = 1; }
bool interrupted() { return noted != 0; }

}  // namespace rooftile::cli
