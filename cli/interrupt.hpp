// Ctrl-C: ends the program at once, or, where a verb has work to end in order, is only noted.
#pragma once

namespace rooftile::cli {

/// A standard stream that the caller closed is /dev/null from now on: else the next file opened took its number, and messages went into it.
void open_standard_streams();
/// From now on SIGINT ends the program with exit code 130, and neither SIGPIPE nor SIGXFSZ ends it.
void handle_signals();

/// From now on the first SIGINT is noted for interrupted(); a second one ends the program.
void note_interrupts();
bool interrupted();

}  // namespace rooftile::cli
