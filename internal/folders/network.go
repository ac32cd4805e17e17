package folders

import "strings"

// networkKinds are the file systems, by the names that systems have for them, over which several hosts or a host and its guests reach
// one file: their locks and shared memory do not do what SQLite needs of them.
var networkKinds = map[string]bool{
	"nfs": true, "nfs4": true, "cifs": true, "smb": true, "smb2": true, "smb3": true, "smbfs": true, "9p": true, "afs": true, "ceph": true, "coda": true,
	"ncpfs": true, "lustre": true, "gpfs": true, "beegfs": true, "glusterfs": true, "ocfs2": true, "gfs2": true, "pvfs2": true, "webdav": true,
	"afpfs": true, "davfs": true,
	"fuse.sshfs": true, "fuse.glusterfs": true, "fuse.ceph": true, "fuse.ceph-fuse": true, "fuse.s3fs": true, "fuse.davfs2": true, "fuse.rclone": true,
	"fuse.smbnetfs": true, "fuse.curlftpfs": true, "fuse.gcsfuse": true, "fuse.mount.nfs": true, "fuse.juicefs": true,
}

// isNetworkKind reports whether a type of file system is one of a network.
func isNetworkKind(kind string) bool { return networkKinds[strings.ToLower(kind)] }
