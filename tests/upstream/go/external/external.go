// The scheduler of an integration test, run as a program of its own.
//
// This file is added to a copy of k8s.io/kubernetes/pkg/scheduler at build time, together with two edits of scheduler.go:
// New calls rememberOptions, and the original Run is called runInProcess. The scheduler that New builds still follows
// the cluster, because tests wait for its cache, but it decides nothing: the program named by EXTERNAL_SCHEDULER does,
// with the configuration that the test asked for.
package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// How long a program may take to end after it was interrupted.
const grace = 10 * time.Second

var remembered sync.Map

func rememberOptions(sched *Scheduler, options schedulerOptions) { remembered.Store(sched, options) }

// Run starts the program and ends it with the context. Without a program the scheduler runs in this process.
func (sched *Scheduler) Run(ctx context.Context) {
	program := os.Getenv("EXTERNAL_SCHEDULER")
	if program == "" {
		sched.runInProcess(ctx)
		return
	}
	value, _ := remembered.Load(sched)
	options := value.(schedulerOptions)
	if len(options.frameworkOutOfTreeRegistry) > 0 {
		// The test says nothing about the program; running it here only keeps the tests around it going.
		fmt.Println("EXTERNAL-SCHEDULER needs plugins written in Go")
		sched.runInProcess(ctx)
		return
	}
	if err := runProgram(ctx, program, options); err != nil {
		fmt.Printf("EXTERNAL-SCHEDULER failed: %v\n", err)
	}
}

func runProgram(ctx context.Context, program string, options schedulerOptions) error {
	if options.kubeConfig == nil {
		return fmt.Errorf("the test gives no address of the API server")
	}
	folder, err := os.MkdirTemp("", "external-scheduler-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, options.kubeConfig); err != nil {
		return err
	}
	config := filepath.Join(folder, "config.yaml")
	if err := writeConfiguration(config, kubeconfig, options); err != nil {
		return err
	}
	log, err := os.Create(logName(folder))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.CommandContext(ctx, program, "--config", config, "--secure-port", "0")
	command.Env = append(os.Environ(), "CHANGED_FEATURE_GATES="+changedGates(), "EMULATED_VERSION="+emulatedVersion())
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = grace
	fmt.Println("EXTERNAL-SCHEDULER started")
	if err := command.Run(); ctx.Err() == nil {
		return fmt.Errorf("it ended by itself: %v; its log is %s", err, log.Name())
	}
	return nil
}

// The feature gates that the test changed, as kube-scheduler's flag takes them.
func changedGates() string {
	var changed []string
	for name, spec := range feature.DefaultMutableFeatureGate.GetAll() {
		if enabled := feature.DefaultFeatureGate.Enabled(name); enabled != spec.Default {
			changed = append(changed, fmt.Sprintf("%s=%t", name, enabled))
		}
	}
	sort.Strings(changed)
	return strings.Join(changed, ",")
}

// The version whose feature gates the test asked for, as kube-scheduler's flag takes it.
func emulatedVersion() string {
	version := feature.DefaultMutableFeatureGate.EmulationVersion()
	return fmt.Sprintf("%d.%d", version.Major(), version.Minor())
}

// Logs are kept where EXTERNAL_SCHEDULER_LOGS says, one for each start.
func logName(folder string) string {
	if logs := os.Getenv("EXTERNAL_SCHEDULER_LOGS"); logs != "" {
		return filepath.Join(logs, filepath.Base(folder)+".log")
	}
	return filepath.Join(folder, "log")
}

func writeKubeconfig(path string, config *rest.Config) error {
	cluster := clientcmdapi.NewCluster()
	cluster.Server = config.Host
	cluster.CertificateAuthorityData = config.CAData
	cluster.CertificateAuthority = config.CAFile
	cluster.TLSServerName = config.ServerName
	cluster.InsecureSkipTLSVerify = config.Insecure
	user := clientcmdapi.NewAuthInfo()
	user.Token = config.BearerToken
	user.ClientCertificateData, user.ClientKeyData = config.CertData, config.KeyData
	user.ClientCertificate, user.ClientKey = config.CertFile, config.KeyFile
	result := clientcmdapi.NewConfig()
	result.Clusters["test"], result.AuthInfos["test"] = cluster, user
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = "test", "test"
	result.Contexts["test"], result.CurrentContext = context, "test"
	return clientcmd.WriteToFile(*result, path)
}

func writeConfiguration(path, kubeconfig string, options schedulerOptions) error {
	versioned := configv1.KubeSchedulerConfiguration{}
	scheme.Scheme.Default(&versioned)
	config := schedulerapi.KubeSchedulerConfiguration{}
	if err := scheme.Scheme.Convert(&versioned, &config, nil); err != nil {
		return err
	}
	config.Profiles, config.Extenders = options.profiles, options.extenders
	config.PercentageOfNodesToScore = &options.percentageOfNodesToScore
	config.PodInitialBackoffSeconds = options.podInitialBackoffSeconds
	config.PodMaxBackoffSeconds = options.podMaxBackoffSeconds
	config.Parallelism = options.parallelism
	config.LeaderElection.LeaderElect = false
	config.ClientConnection.Kubeconfig = kubeconfig
	// Tests ask at once for more than the default 50 requests a second allow.
	config.ClientConnection.QPS, config.ClientConnection.Burst = 5000, 5000
	yaml, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	text := bytes.Buffer{}
	if err := scheme.Codecs.EncoderForVersion(yaml.Serializer, configv1.SchemeGroupVersion).Encode(&config, &text); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}
