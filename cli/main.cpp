// The program: nothing but the command line.
#include "rooftile/rooftile.h"

int main(int argc, char** argv) { return rooftile_main(argc, argv); }
