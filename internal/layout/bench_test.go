package layout

import "testing"

func BenchmarkArrange(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
		e    [][2]int
	}{
		{"30 nodes in levels", 30, layered(6, 5, 2, 2, 1)},
		{"1000 nodes in levels", 1000, layered(20, 50, 3, 2, 1)},
		{"10000 nodes in 100 levels", 10_000, layered(100, 100, 3, 3, 1)},
		{"10000 nodes in 10 levels", 10_000, layered(10, 1000, 3, 2, 1)},
		{"10000 nodes in 2000 levels", 10_000, layered(2000, 5, 3, 50, 1)},
		{"chain of 10000", 10_000, chainOf(10_000)},
		{"fan of 9998", 10_000, fan(9998)},
		{"chain of 10000 with two hubs", 10_000, hubs(10_000)},
		{"tangle of 10000", 10_000, tangled(10_000, 20_000, 1)},
		{"10000 single nodes", 10_000, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := graph(c.n, c.e)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Arrange(g, Options{Slope: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
