// Command release makes the files of a release: archives, packages, bills of materials and their checksums. It owns how they are
// named and in which order things are in them, so that one commit and one version of Go give the same bytes each time.
package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The tools, which go run fetches from the module proxy.
const (
	nfpm    = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"                   // MIT
	cyclone = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0" // Apache-2.0
)

// A release is what all its files have in common.
type release struct {
	out, version, revision string
	date                   time.Time // of the commit
	stage                  string    // a folder for what goes into the files
	here                   string    // the program for this machine
}

func main() {
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "systems, by commas")
	packages := flag.String("packages", "deb,rpm", "kinds of packages for the targets with Linux, by commas")
	bill := flag.Bool("sbom", true, "write the bills of materials")
	out := flag.String("out", "dist", "the folder of the files, which is emptied first")
	flag.Parse()
	if err := run(*out, strings.Split(*targets, ","), strings.FieldsFunc(*packages, func(r rune) bool { return r == ',' }), *bill); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out string, targets, packages []string, bill bool) (err error) {
	r := release{out: out}
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	r.stage = filepath.Join(out, ".stage")
	defer func() { err = cmp.Or(err, os.RemoveAll(r.stage), os.RemoveAll(r.here)) }()
	if err := r.documents(); err != nil {
		return err
	}
	for _, target := range targets {
		system, arch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q is not SYSTEM/ARCHITECTURE", target)
		}
		if err := r.target(system, arch, packages, bill); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	if err := os.Remove(r.here); err != nil {
		return err
	}
	return r.checksums()
}

// identify finds out which commit this is, and its version: the tag, or a version before all tags.
func (r *release) identify() error {
	said, err := output("git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}
	var date string
	r.revision, date, _ = strings.Cut(said, " ")
	if r.date, err = time.Parse(time.RFC3339, date); err != nil {
		return err
	}
	r.date = r.date.UTC()
	r.version, err = output("git", "describe", "--tags", "--match", "v[0-9]*")
	if err != nil { // no tag yet
		r.version = "0.0.0-dev." + r.date.Format("20060102") + ".g" + r.revision[:8]
	}
	if changed, err := output("git", "status", "--porcelain"); err != nil || changed != "" {
		r.version += "-dirty"
	}
	r.version = strings.TrimPrefix(r.version, "v")
	return nil
}

// documents puts what every system gets into the stage: manuals, completions and texts. The program of this machine writes them.
func (r *release) documents() error {
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(r.stage, dir), 0o755); err != nil {
			return err
		}
	}
	r.here = filepath.Join(r.out, ".here")
	if err := r.build(r.here, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	if _, err := output(r.here, "man", filepath.Join(r.stage, "man")); err != nil {
		return err
	}
	for shell, file := range map[string]string{"bash": "sluice.bash", "zsh": "_sluice", "fish": "sluice.fish", "powershell": "sluice.ps1"} {
		text, err := output(r.here, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.stage, "completions", file), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.stage, file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) build(to, system, arch string) error {
	_, err := output("env", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch,
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version=v"+r.version+
			" -X main.revision="+r.revision+" -X main.date="+r.date.Format(time.RFC3339), "-o", to, "./cmd/sluice")
	return err
}

// target writes the files of one system.
func (r *release) target(system, arch string, packages []string, bill bool) error {
	name := fmt.Sprintf("sluice_%s_%s_%s", r.version, system, arch)
	program, pack := "sluice", r.tarball
	if system == "windows" {
		program, pack = "sluice.exe", r.zip
	}
	path := filepath.Join(r.stage, program)
	if system == runtime.GOOS && arch == runtime.GOARCH {
		if err := os.Link(r.here, path); err != nil {
			return err
		}
	} else if err := r.build(path, system, arch); err != nil {
		return err
	}
	defer os.Remove(path) //nolint:errcheck // the stage is removed as a whole, too
	files, err := r.files(system == "linux")
	if err != nil {
		return err
	}
	if err := pack(filepath.Join(r.out, name), name, files); err != nil {
		return err
	}
	if bill {
		if _, err := output("go", "run", cyclone, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", "v"+r.version, "-output", filepath.Join(r.out, name+".cdx.json"), path); err != nil {
			return err
		}
	}
	if system != "linux" {
		return nil
	}
	for _, kind := range packages {
		if _, err := output("env", "ARCH="+arch, "VERSION="+r.version, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()), "STAGE="+r.stage,
			"go", "run", nfpm, "package", "--config", "internal/release/package/nfpm.yaml", "--packager", kind, "--target", filepath.Join(r.out, name+"."+kind)); err != nil {
			return err
		}
	}
	return nil
}

// A packed is a file of an archive.
type packed struct {
	name, path string
	mode       int64
}

// files returns what goes into an archive, in order.
func (r *release) files(units bool) (all []packed, err error) {
	roots := map[string]string{r.stage: ""}
	if units {
		roots["examples/deploy/systemd"] = "systemd/"
	}
	for root, below := range roots {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			p := packed{below + filepath.ToSlash(name), path, 0o644}
			if below == "" && strings.HasPrefix(name, "sluice") {
				p.mode = 0o755
			}
			all = append(all, p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b packed) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func (r *release) tarball(path, top string, files []packed) error {
	return create(path+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		t := tar.NewWriter(z)
		for _, f := range files {
			text, err := os.ReadFile(f.path)
			if err != nil {
				return err
			}
			head := &tar.Header{Name: top + "/" + f.name, Mode: f.mode, Size: int64(len(text)), ModTime: r.date, Format: tar.FormatUSTAR}
			if err := t.WriteHeader(head); err != nil {
				return err
			}
			if _, err := t.Write(text); err != nil {
				return err
			}
		}
		return cmp.Or(t.Close(), z.Close())
	})
}

func (r *release) zip(path, top string, files []packed) error {
	return create(path+".zip", func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range files {
			text, err := os.ReadFile(f.path)
			if err != nil {
				return err
			}
			one, err := z.CreateHeader(&zip.FileHeader{Name: top + "/" + f.name, Method: zip.Deflate, Modified: r.date})
			if err != nil {
				return err
			}
			if _, err := one.Write(text); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// checksums writes the SHA-256 of each file, as sha256sum --check reads them.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), e.Name())
	}
	fmt.Print(b.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}

func create(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	return write(f)
}

// output runs a command and returns what it printed, without the newline at its end.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String()+string(text))
	}
	return strings.TrimRight(string(text), "\n"), nil
}
