package main

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"sort"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// describe spells a value as text that names its type, the same for equal values of the same type.
func describe(value ref.Val) string {
	switch v := value.(type) {
	case types.Bool, types.Int:
		return fmt.Sprint(v.Value())
	case types.Uint:
		return fmt.Sprintf("%du", uint64(v))
	case types.Double:
		return "double " + strconv.FormatFloat(float64(v), 'g', -1, 64)
	case types.String:
		return strconv.QuoteToASCII(string(v))
	case types.Bytes:
		return "bytes " + base64.StdEncoding.EncodeToString(v)
	case types.Null:
		return "null"
	case types.Duration:
		return fmt.Sprintf("duration %dns", v.Nanoseconds())
	case types.Timestamp:
		return fmt.Sprintf("timestamp %d.%09d", v.Unix(), v.Nanosecond())
	case *types.Type:
		return "type " + v.TypeName()
	case *types.Optional:
		if v.HasValue() {
			return "optional(" + describe(v.GetValue()) + ")"
		}
		return "optional.none"
	case apiservercel.Quantity:
		return describeQuantity(v)
	case *apiservercel.Quantity:
		return describeQuantity(*v)
	case apiservercel.Semver:
		return "semver " + v.String()
	case apiservercel.IP:
		return "ip " + v.Addr.String()
	case apiservercel.CIDR:
		return "cidr " + v.Prefix.String()
	case apiservercel.URL:
		return "url " + v.URL.String()
	case apiservercel.Format:
		return "format " + v.Name
	case traits.Mapper:
		return describeMap(v)
	case traits.Lister:
		text := "["
		for it := v.Iterator(); it.HasNext() == types.True; {
			text += describe(it.Next()) + ","
		}
		return text + "]"
	}
	return fmt.Sprintf("%s %v", value.Type().TypeName(), value.Value())
}

// describeQuantity gives the exact amount as a fraction; the same amount may be written in several ways.
func describeQuantity(value apiservercel.Quantity) string {
	quantity := value.Quantity.DeepCopy()
	amount, ok := new(big.Rat).SetString(quantity.AsDec().String())
	if !ok {
		return "quantity " + quantity.String()
	}
	return "quantity " + amount.RatString()
}

func describeMap(value traits.Mapper) string {
	var entries []string
	for it := value.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		entry, _ := value.Find(key)
		entries = append(entries, describe(key)+":"+describe(entry)+",")
	}
	sort.Strings(entries)
	text := "{"
	for _, entry := range entries {
		text += entry
	}
	return text + "}"
}
