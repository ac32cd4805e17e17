// Package bench owns the benchmarks of Sluice: ordinary benchmarks of package testing, which make
// bench runs. Each figure stands beside its peer of the same run, such as the bare database driver,
// ninja, or an ideal schedule. The benchmarks judge only the ratio of the two, because a machine may
// be slow for a day; the table floors has the limits.
//
//	make bench                              everything; half an hour
//	make bench QUICK=1                      small sizes, each once; floors are shown and not judged
//	make bench RUN=noop/sqlite BENCH='-cpuprofile cpu.prof'
//	make bench RUN=river RIVER=postgres://USER@HOST:PORT/DATABASE
//
// Figures are medians of several repetitions. Each repetition measures all sides in turn, each on a
// new database. A scenario that misses a floor is measured again, at most twice, and notes the
// earlier ratios. MongoDB takes part if SLUICE_TEST_MONGODB names a server, and ninja and chromium
// if they are installed. River takes part if RIVER names a PostgreSQL server. Its program is a module
// of its own in the folder river, and is built only then.
package bench
