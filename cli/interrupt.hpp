// Ctrl-C: ends the program at once, or, where a verb has work to end in order, is only noted.
#pragma once

namespace rooftile::cli {

/// From now on SIGINT ends the program with exit code 130, and neither SIGPIPE nor SIGXFSZ ends it.
void handle_signals();

/// From now on the first SIGINT is noted for interrupted(); a second one ends the program.
void note_interrupts();
bool interrupted();

}  // namespace rooftile::cli
