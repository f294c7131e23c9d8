/* The program of the package: the library's command line. */
#include "rooftile/rooftile.h"

int main(int argc, char** argv) { return rooftile_main(argc, argv); }
